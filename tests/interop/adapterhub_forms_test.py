"""Adapters of AdapterHub's library in every form that computes the same."""

import json
import shutil

import numpy as np
import pytest

from adapter_bert_tf.base import load_base
from adapter_bert_tf.interop.adapterhub_files.bottleneck import reduction_factor
from adapter_bert_tf.interop.adapterhub_files.importing import import_adapter
from tests.interop.hub_files import HUB, drop_json, edit_json, edit_weights
from tests.refusals import raises_code

CONFIG, WEIGHTS = "adapter_config.json", "adapter.safetensors"
HEAD_CONFIG, HEAD_WEIGHTS = "head_config.json", "model_head.safetensors"


@pytest.fixture(scope="module")
def base():
    return load_base(str(HUB / "base"))


def _scaled(folder, kind, width):
    """The same function: up projections divided by scales that the file holds as learned."""
    scales = np.linspace(0.5, 2.0, width, dtype="f4")

    def change(tensors):
        changed = dict(tensors)
        for name, value in tensors.items():
            path, _, part = name.partition(".adapter_up.")
            if part:
                own = scales[:, None] if part == "weight" and width > 1 else scales
                changed[name] = value / own
                changed[f"{path}.scaling"] = scales
        return changed

    edit_weights(folder, WEIGHTS, change)
    edit_json(folder, CONFIG, config_scaling=kind)


def _union(folder):
    config = json.loads((folder / CONFIG).read_text())["config"]
    edit_json(folder, CONFIG, config={"architecture": "union", "configs": [config]})


def _without_prefix(folder):
    edit_weights(folder, WEIGHTS, lambda t: {k.removeprefix("bert."): v for k, v in t.items()})


def _another_head(folder):
    """The library saves all heads whose names begin with that of the adapter."""

    def change(tensors):
        own, others = "heads.houlsby.", ("heads.houlsby2.", "heads.houlsby_old.")
        copies = {k.replace(own, other): 2 * v for k, v in tensors.items() for other in others}
        return tensors | copies

    edit_weights(folder, HEAD_WEIGHTS, change)


def _options(**options):
    return lambda folder: edit_json(
        folder, CONFIG, **{f"config_{name}": value for name, value in options.items()}
    )


# Of which adapter, and the change that leaves its function as it is.
SAME = {
    "saved from BertModel": ("houlsby", _without_prefix),
    "one learned scale": ("houlsby", lambda d: _scaled(d, "learned", 1)),
    "a scale for each channel": ("pfeiffer", lambda d: _scaled(d, "channel", 16)),
    "a union of one": ("pfeiffer", _union),
    "an activation in capitals": ("pfeiffer", _options(non_linearity="ReLU")),
    "Swish": ("houlsby", _options(non_linearity="Swish")),
    "silu": ("houlsby", _options(non_linearity="SiLU")),
    "another residual of the same value": ("houlsby", _options(residual_before_ln=False)),
    "a residual before no LayerNorm": ("houlsby", _options(adapter_residual_before_ln=True)),
    "residuals of a parallel adapter": (
        "parallel",
        _options(
            residual_before_ln="post_add",
            adapter_residual_before_ln=True,
            original_ln_before=True,
        ),
    ),
    "another head whose name begins alike": ("houlsby", _another_head),
    "a head in capitals": (
        "houlsby",
        lambda d: edit_json(d, HEAD_CONFIG, config_activation_function="Tanh"),
    ),
    "a head with defaults": (
        "houlsby",
        lambda d: drop_json(d, HEAD_CONFIG, "use_pooler", "bias", "layers", "dropout_prob"),
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_other_forms_of_the_same_adapter(case, base, tmp_path):
    name, change = SAME[case]
    expected = import_adapter(str(HUB / name), base)
    folder = shutil.copytree(HUB / name, tmp_path / "a")
    change(folder)
    found = import_adapter(str(folder), base)
    unlike = {"versions": {}, "derived": {}}
    assert found.config | unlike == expected.config | unlike
    assert found.weights.keys() == expected.weights.keys()
    for key, value in expected.weights.items():
        np.testing.assert_allclose(found.weights[key], value, rtol=1e-6, err_msg=key)


def test_learned_scales_replace_the_number(base, tmp_path):
    """`scaled_par_bn` with a learned scale: the file's number 4 becomes part of the weights."""
    folder = shutil.copytree(HUB / "parallel", tmp_path / "a")
    _scaled(folder, "learned", 1)
    found = import_adapter(str(folder), base)
    assert found.config["adapter"]["scale"] == 1.0


OTHER_FUNCTIONS = {
    "the residual after the LayerNorm": ("pfeiffer", {"residual_before_ln": False}),
    "the residual after the sum": ("pfeiffer", {"residual_before_ln": "post_add"}),
    "a value that the library cannot compute": ("houlsby", {"residual_before_ln": "post_add"}),
    "a LayerNorm after": ("houlsby", {"ln_after": True, "adapter_residual_before_ln": True}),
    "no LayerNorm of the base": ("parallel", {"original_ln_after": False}),
    "a gate that is a number": ("parallel", {"use_gating": 1}),
}


@pytest.mark.parametrize("case", OTHER_FUNCTIONS)
def test_options_that_change_the_function(case, base, tmp_path):
    name, options = OTHER_FUNCTIONS[case]
    folder = shutil.copytree(HUB / name, tmp_path / "a")
    _options(**options)(folder)
    with raises_code("unsupported", next(iter(options))):
        import_adapter(str(folder), base)


ACTIVATIONS = {  # What the file says, with and without a version, and our name.
    ("gelu", True): "gelu_erf",
    ("gelu", False): "gelu",
    ("GELU", False): "gelu_erf",  # The library renames exact spellings.
    ("gelu_orig", False): "gelu_erf",
    ("gelu_new", False): "gelu",
    ("gelu_new", True): "gelu",
    ("gelu_fast", True): "gelu",
    ("gelu_python", True): "gelu_erf",
    ("linear", True): "linear",
    ("Tanh", True): "tanh",
    ("gelu_orig", True): None,
    ("mish", True): None,
    (None, True): None,
}


@pytest.mark.parametrize(("name", "has_version"), ACTIVATIONS, ids=str)
def test_activations(name, has_version, base, tmp_path):
    folder = shutil.copytree(HUB / "pfeiffer", tmp_path / "a")
    edit_json(folder, CONFIG, config_non_linearity=name)
    if not has_version:
        drop_json(folder, CONFIG, "version")
    expected = ACTIVATIONS[name, has_version]
    if expected is None:
        with raises_code("unsupported", "non_linearity"):
            import_adapter(str(folder), base)
        return
    assert import_adapter(str(folder), base).config["adapter"]["activation"] == expected


def test_another_size_for_each_layer(base, tmp_path):
    """Units of zeros change no result: layer 0 has 4 units more, after both sublayers."""
    folder = shutil.copytree(HUB / "houlsby", tmp_path / "a")

    def widen(tensors):
        axes = {"down.0.weight": 0, "down.0.bias": 0, "up.weight": 1}
        return {
            name: np.concatenate([value, np.zeros_like(value)], axes[name.split("adapter_")[1]])
            if ".layer.0." in name and name.split("adapter_")[1] in axes
            else value
            for name, value in tensors.items()
        }

    edit_weights(folder, WEIGHTS, widen)
    adapter = import_adapter(str(folder), base).config["adapter"]
    assert adapter["bottleneck_size"] in (4, 8)
    sizes = {str(i): adapter["bottleneck_size"] for i in range(2)} | adapter["layer_sizes"]
    assert sizes == {"0": 8, "1": 4}


@pytest.mark.parametrize("width", [16, 100, 128, 256, 312, 384, 512, 768, 1024])
def test_the_library_computes_the_size_from_the_factor(width):
    """With the plain quotient 315 of 768 sizes were one too small, 60 of 768 among them."""
    sizes = range(1, 2 * width)
    assert [int(width // reduction_factor(width, size)) for size in sizes] == list(sizes)
