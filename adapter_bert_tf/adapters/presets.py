"""Presets: published methods by name."""

import dataclasses

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.languages.invertible import InvertibleConfig
from adapter_bert_tf.adapters.methods.compacter import CompacterConfig
from adapter_bert_tf.adapters.methods.gated import GatedConfig
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.prefix import PrefixConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.adapters.registry import ModuleConfig

PFEIFFER = AdapterConfig(activation="relu", sublayers=("feed_forward",), normalize_input=True)
PRESETS: dict[str, ModuleConfig] = {
    # Houlsby et al. 2019: an adapter after both sublayers, tanh-GELU, size 64.
    "houlsby": AdapterConfig(),
    # The same with the initial values of the original code: both kernels near zero.
    "adapter_bert": AdapterConfig(init_scale=1e-3, identity_init=False),
    # Pfeiffer et al. 2021 (AdapterFusion): one adapter a layer, after the feed-forward sublayer.
    "pfeiffer": PFEIFFER,
    # Pfeiffer et al. 2020 (MAD-X): language adapters, with an invertible one at the embeddings.
    "pfeiffer+inv": UnionConfig((InvertibleConfig(), PFEIFFER)),
    "houlsby+inv": UnionConfig((InvertibleConfig(activation="gelu"), AdapterConfig())),
    # AdapterHub's names of the same; its Houlsby adapters have the activation swish.
    "seq_bn_inv": UnionConfig((InvertibleConfig(), PFEIFFER)),
    "double_seq_bn_inv": UnionConfig(
        (InvertibleConfig(activation="swish"), AdapterConfig(activation="swish"))
    ),
    # He et al. 2022, section 4: parallel to the feed-forward sublayer instead of after it; their
    # best one is scaled by 4.
    "parallel": AdapterConfig(activation="relu", sublayers=("feed_forward",), placement="parallel"),
    "scaled_parallel": AdapterConfig(
        activation="relu", sublayers=("feed_forward",), placement="parallel", scale=4.0
    ),
    # Hu et al. 2021: low-rank changes of queries and values.
    "lora": LoraConfig(),
    # Liu et al. 2022: vectors for keys, values and the activation of the feed-forward sublayer.
    "ia3": Ia3Config(),
    # Li & Liang 2021: trained keys and values, through a network of 512 hidden units.
    "prefix": PrefixConfig(),
    # Mahabadi et al. 2021 (Compacter): an adapter after both sublayers, or only after the
    # feed-forward sublayer.
    "compacter": CompacterConfig(),
    "compacter++": CompacterConfig(sublayers=("feed_forward",)),
    # He et al. 2022, section 4.6: a prefix of 30 and a scaled parallel adapter of size 512.
    "mam": UnionConfig(
        (
            PrefixConfig(30),
            AdapterConfig(
                512, activation="relu", sublayers=("feed_forward",), placement="parallel", scale=4.0
            ),
        )
    ),
    # Mao et al. 2022 (UniPELT), section 4: a prefix of 10, LoRA of rank 8 and an adapter of
    # Pfeiffer's of size 48, with gates. A gate takes the place of LoRA's factor, so that is 1.
    "unipelt": UnionConfig(
        (
            GatedConfig(PrefixConfig(10)),
            GatedConfig(LoraConfig(8, alpha=8)),
            GatedConfig(dataclasses.replace(PFEIFFER, bottleneck_size=48)),
        )
    ),
}
