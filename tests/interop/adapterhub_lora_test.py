"""Options of LoRA and (IA)^3 in files of AdapterHub that its library does not write."""

import numpy as np
import pytest

from adapter_bert_tf.interop.adapterhub_files.lora import read_lora
from adapter_bert_tf.interop.adapterhub_files.methods import read_adapter
from tests.refusals import raises_code

PATH = "bert.encoder.layer.0.attention.self.value.loras.a"
SCALE = {"composition_mode": "scale", "attn_matrices": ["v"], "r": 1, "alpha": 1}


def tensors():
    return {f"{PATH}.lora_B": np.full((4, 1), 3.0, "f4")}


def test_a_vector_times_alpha():
    config, weights = read_lora(SCALE | {"alpha": 2}, tensors(), "a", 1)
    assert config.projections == ("value",)
    np.testing.assert_array_equal(weights["adapters/layer_0/value/scale"], [6.0] * 4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": "x"}, "damaged: alpha"),
        ({"alpha": float("nan")}, "damaged: alpha"),
        ({"composition_mode": 7}, "unsupported: composition_mode"),
        ({"attn_matrices": "v"}, "damaged: attn_matrices"),
        ({"attn_matrices": [["v"]]}, "unsupported: query"),
        ({"use_gating": True}, "unsupported: gates"),
        ({"use_dora": True}, "unsupported: use_dora"),
    ],
)
def test_refused(options, said):
    with raises_code(said):
        read_adapter({"architecture": "lora"} | SCALE | options, True, tensors(), "a", 1)
