"""Each method against PEFT or `adapters`: logits before and after a step of training."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.methods.compacter import CompacterConfig
from adapter_bert_tf.adapters.methods.gated import GatedConfig
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.prefix import PrefixConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.variable_specs import DENSE_PATHS
from adapter_bert_tf.base import load_base
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support

FOLDER = support.GOLDEN.parent / "methods"
PREFIX = PrefixConfig(3, inner_size=5)
PARALLEL = AdapterConfig(
    4, activation="relu", sublayers=("feed_forward",), placement="parallel", scale=4.0
)
# Dict from the name of a file, which `tests/golden/methods/make.py` explains, to the configuration.
CONFIGS = {
    "lora": LoraConfig(4, 6),
    "lora_patterns": LoraConfig(
        4,
        6,
        projections=tuple(DENSE_PATHS),
        rank_stabilized=True,
        ranks={"layer_1/intermediate": 2},
        alphas={"layer_0/query": 3},
    ),
    "ia3": Ia3Config(),
    "lora_hub": LoraConfig(4, 6, projections=("query", "value", "intermediate", "output")),
    "ia3_hub": Ia3Config(("key", "value", "intermediate")),
    "prefix": PREFIX,
    "prefix_flat": PrefixConfig(3, reparametrized=False, layers=(1,)),
    "compacter": CompacterConfig(4, 2, 2),
    "compacter++": CompacterConfig(8, 4, sublayers=("feed_forward",), normalize_input=True),
    "mam": UnionConfig((PREFIX, PARALLEL)),
    "unipelt": UnionConfig(
        (
            GatedConfig(PREFIX),
            GatedConfig(LoraConfig(4, 4)),
            GatedConfig(dataclasses.replace(PRESETS["pfeiffer"], bottleneck_size=4)),
        )
    ),
}


@pytest.fixture(scope="module")
def base():
    return load_base(str(support.GOLDEN.parent / "adapterhub" / "base"))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_equals_that_of_the_library(name, base):
    golden = np.load(FOLDER / f"{name}.npz")
    model = Classifier(base.build_encoder(CONFIGS[name]), 3)
    variables = select_trained(model, Tuning(train_layer_norm=False))
    values = {n.removeprefix("value/"): golden[n] for n in golden if n.startswith("value/")}
    assert values.keys() == variables.keys()
    for key, value in values.items():
        variables[key].assign(value)
    ids = golden["ids"].astype("i4")
    inputs = {
        "input_word_ids": ids,
        "input_mask": (ids > 0).astype("i4"),
        "input_type_ids": np.zeros_like(ids),
    }
    with tf.GradientTape() as tape:
        logits = model(inputs, training=False)
        loss = tf.reduce_mean(model.training_loss()(golden["labels"], logits))
    np.testing.assert_allclose(logits, golden["before"], atol=1e-4)
    for variable, gradient in zip(
        variables.values(), tape.gradient(loss, list(variables.values())), strict=True
    ):
        variable.assign_sub(golden["rate"].astype("f4") * gradient)
    after = model(inputs, training=False)
    np.testing.assert_allclose(after, golden["after"], atol=1e-4)
    assert np.abs(after - logits).max() > 1e-2


def test_every_new_method_has_a_figure():
    kinds = {config.kind for config in CONFIGS.values()}
    assert {c.kind for c in PRESETS.values()} - kinds == {AdapterConfig.kind}  # See encoder_test.
