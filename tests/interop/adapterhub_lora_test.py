"""Options of LoRA and (IA)^3 in files of AdapterHub that its library does not write."""

import numpy as np
import pytest

from adapter_bert_tf.interop.adapterhub_files.lora import read_lora
from adapter_bert_tf.interop.adapterhub_files.methods import read_adapter
from tests.interop.hub_files import VERSION
from tests.refusals import raises_code

PATH = "bert.encoder.layer.0.attention.self.value.loras.a"
SCALE = {"composition_mode": "scale", "attn_matrices": ["v"], "r": 1, "alpha": 1}


def tensors():
    return {f"{PATH}.lora_B": np.full((4, 1), 3.0, "f4")}


def test_a_vector_times_alpha():
    config, weights = read_lora(SCALE | {"alpha": 2}, VERSION, tensors(), "a", 1)
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
        read_adapter({"architecture": "lora"} | SCALE | options, VERSION, tensors(), "a", 1)


# The version of the library, options, and the scale that it trained with.
SCALES = {
    "LoRA": ("adapters.1.1.0", {"r": 4, "alpha": 16}, 4.0),
    "LoRA without a version": (None, {"r": 4, "alpha": 16}, 4.0),
    "LoRA of adapter-transformers": ("3.2.1", {"r": 4, "alpha": 16}, 4.0),
    "LoRA before 1.1": ("adapters.1.0.1", {"r": 4, "alpha": 16}, 1.0),
    "LoRA of 0.2": ("adapters.0.2.2", {"r": 4, "alpha": 16}, 1.0),
    "LoRA of a development version": ("adapters.1.1.0.dev0", {"r": 4, "alpha": 16}, 1.0),
    "LoRA of a later version": ("adapters.1.10.0", {"r": 4, "alpha": 16}, 4.0),
    "(IA)^3": ("adapters.1.1.0", SCALE | {"alpha": 2}, 2.0),
    "(IA)^3 before 1.1": ("adapters.1.0.0", SCALE | {"alpha": 2}, 1.0),
}


@pytest.mark.parametrize("in_union", [False, True], ids=["alone", "in a union"])
@pytest.mark.parametrize("case", SCALES)
def test_the_scale_of_the_version_that_trained(case, in_union):
    """Versions before 1.1.0 trained without alpha / r (adapters#770)."""
    version, options, expected = SCALES[case]
    options = {"architecture": "lora", "attn_matrices": ["v"]} | options
    hub = {"architecture": "union", "configs": [options]} if in_union else options
    rank = options["r"]
    arrays = {f"{PATH}.lora_B": np.ones((4, rank), "f4")}
    if "composition_mode" not in options:
        arrays[f"{PATH}.lora_A"] = np.ones((rank, 4), "f4")
    config, weights = read_adapter(hub, version, arrays, "a", 1)
    if config.kind == "lora":
        assert config.factor_of(0, "value") == expected
    else:
        np.testing.assert_array_equal(weights["adapters/layer_0/value/scale"], [expected] * 4)
