"""Files of PEFT: hand-made ones, what they become, and what is refused."""

import json
import logging
import os

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.interop.adapterhub_files.importing import import_adapter
from adapter_bert_tf.interop.peft_files.exporting import export_peft
from adapter_bert_tf.interop.peft_files.importing import import_peft
from adapter_bert_tf.store import contents
from tests.interop.adapterhub_parity_test import BASE
from tests.interop.hub_files import HUB
from tests.refusals import raises_code

POOLER = "base_model.model.bert.pooler.dense"
ONES = np.ones((2, 16))
QUERY = "base_model.model.bert.encoder.layer.{}.attention.self.query.lora_{}.weight"
OPTIONS = {"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 2, "lora_alpha": 4, "bias": "none"}


@pytest.fixture(scope="module")
def base():
    return load_base(BASE)


def tensors(layers=(0, 1), **more):
    """LoRA of rank 2 on queries, and a head of three classes."""
    rng = np.random.default_rng(0)
    arrays = {"base_model.model.classifier.weight": rng.normal(size=(3, 16))}
    arrays["base_model.model.classifier.bias"] = np.arange(3.0)
    for layer in layers:
        arrays[QUERY.format(layer, "A")] = rng.normal(size=(2, 16))
        arrays[QUERY.format(layer, "B")] = rng.normal(size=(16, 2))
    return {name: array.astype("f4") for name, array in (arrays | more).items()}


def write(folder, arrays=None, **options):
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(OPTIONS | options))
    safetensors.numpy.save_file(arrays or tensors(), str(folder / "adapter_model.safetensors"))
    return str(folder)


def test_values(base, tmp_path):
    saved = import_peft(write(tmp_path / "reviews"), base, labels=["a", "b", "c"], texts=2)
    adapter = contents.adapter_of(saved.config)
    assert (adapter.kind, adapter.rank, adapter.factor_of(0, "query")) == ("lora", 2, 2.0)
    assert (saved.config["task"], saved.config["labels"]) == ("reviews", ["a", "b", "c"])
    assert saved.config["inputs"]["texts"] == 2
    given = tensors()
    a = saved.weights["adapters/layer_1/query/lora_a"]
    np.testing.assert_array_equal(a, given[QUERY.format(1, "A")].T)
    head = saved.weights["head/kernel"]
    np.testing.assert_array_equal(head, given["base_model.model.classifier.weight"].T)


@pytest.mark.parametrize(
    ("options", "layers", "ranks", "alphas"),
    [
        ({}, (1,), (), ()),
        ({"alpha_pattern": {"layer.1.attention.self.query": 6}}, (0, 1), (), {"layer_1/query": 6}),
        ({"alpha_pattern": {r"layer\.\d+\.attention\.self\.query": 6}}, (0, 1), (), ()),
        ({"alpha_pattern": {"elf.query": 6}}, (0, 1), (), ()),  # Not the whole name of a module.
    ],
)
def test_patterns(options, layers, ranks, alphas, base, tmp_path):
    folder = write(tmp_path / "peft", tensors(layers), **options)
    adapter = contents.adapter_of(import_peft(folder, base).config)
    assert adapter.layers == (None if layers == (0, 1) else layers)
    assert (dict(adapter.ranks), dict(adapter.alphas)) == (dict(ranks), dict(alphas))
    assert adapter.alpha == (6 if "\\d" in str(options) else 4)


REFUSED = {
    "DoRA": ({"use_dora": True}, None, "unsupported: use_dora"),
    "another method": ({"peft_type": "OFT"}, None, "unsupported: OFT"),
    "biases": ({"bias": "lora_only"}, None, "unsupported: bias"),
    "a changed base": ({"init_lora_weights": "pissa"}, None, "unsupported: init_lora_weights"),
    "a base changed by LoRA-GA": (
        {"init_lora_weights": "lora_ga"},
        None,
        "unsupported: init_lora_weights",
    ),
    "half of a pooler's LoRA": (
        {},
        tensors(**{f"{POOLER}.lora_A.weight": ONES}),
        "damaged: pooler",
    ),
    "a pooler's (IA)^3": ({}, tensors(**{f"{POOLER}.ia3_l": ONES}), "unsupported: pooler"),
    "another pattern": ({"alpha_pattern": {"(a|b)": 1}}, None, "unsupported: alpha_pattern"),
    "another task": ({"task_type": "CAUSAL_LM"}, None, "unsupported: CAUSAL_LM"),
    "an option of a later version": ({"use_new": 1}, None, "unsupported: use_new"),
    "other weights": (
        {},
        tensors(**{"base_model.model.bert.embeddings.word_embeddings.weight": np.zeros((48, 16))}),
        "unsupported: word_embeddings",
    ),
    "another base": (
        {},
        tensors() | {QUERY.format(0, "A"): np.zeros((2, 24), "f4")},
        "invalid: trained on (base_model)?",
    ),
    "no head": (
        {},
        {name: array for name, array in tensors().items() if "classifier" not in name},
        "damaged: classifier",
    ),
    "a number instead of a matrix": (
        {},
        tensors() | {QUERY.format(0, "A"): np.float32(1.0)[...]},
        "damaged: lora_A",
    ),
    "a list as a task": ({"task_type": ["SEQ_CLS"]}, None, "unsupported: SEQ_CLS"),
    "a list as a method": ({"peft_type": ["LORA"]}, None, "unsupported: LORA"),
    "a text as an alpha": ({"lora_alpha": "8"}, None, "damaged: alpha"),
    "one matrix": (
        {},
        {name: array for name, array in tensors().items() if name != QUERY.format(1, "B")},
        "invalid: lora_b",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, base, tmp_path):
    options, arrays, said = REFUSED[case]
    with raises_code(said):
        import_peft(write(tmp_path / "peft", arrays, **options), base)


@pytest.mark.parametrize(
    "start", [True, False, None, "gaussian", "Gaussian", "orthogonal", "eva", "mica", "MiCA"]
)
def test_starts_that_leave_the_base_as_it_is(start, base, tmp_path):
    saved = import_peft(write(tmp_path / "peft", init_lora_weights=start), base)
    assert saved.weights.keys() == import_peft(write(tmp_path / "usual"), base).weights.keys()


def norms(*modules):
    """LayerNorms of `modules_to_save`, by PEFT's names."""
    return {
        f"base_model.model.{module}.LayerNorm.{weight}": np.full(16, value)
        for module in modules
        for weight, value in (("weight", 2.0), ("bias", 3.0))
    }


NORMS = {
    "all": ("bert.embeddings", "bert.encoder.layer.0.output", "bert.encoder.layer.1.output"),
    "the embeddings'": ("bert.embeddings",),
    "one of a layer": ("bert.encoder.layer.1.attention.output",),
}


@pytest.mark.parametrize("case", NORMS)
def test_layer_norms(case, base, tmp_path):
    saved = import_peft(write(tmp_path / "peft", tensors(**norms(*NORMS[case]))), base)
    for module in NORMS[case]:
        path = module.replace(".", "/").replace("layer/", "layer_")
        np.testing.assert_array_equal(saved.weights[f"{path}/LayerNorm/gamma"], [2.0] * 16)
        np.testing.assert_array_equal(saved.weights[f"{path}/LayerNorm/beta"], [3.0] * 16)
    others = {name for name in saved.weights if name.endswith("/gamma")}
    assert len(others) == 5
    back = str(tmp_path / "back")
    export_peft(saved, back, base)
    again = import_peft(back, base)
    assert again.weights.keys() == saved.weights.keys()
    for name, value in saved.weights.items():
        np.testing.assert_array_equal(again.weights[name], value, err_msg=name)


@pytest.mark.parametrize(
    ("options", "factor"),
    [
        ({}, 2.0),
        ({"use_rslora": True}, 4 / 2**0.5),
        ({"alpha_pattern": {"pooler.dense": 6, "query": 4}}, 3.0),
    ],
)
def test_lora_of_the_pooler_becomes_a_trained_pooler(options, factor, base, tmp_path):
    """`target_modules="all-linear"` has it."""
    a, b = np.full((2, 16), 0.5), np.arange(32.0).reshape(16, 2)
    more = {f"{POOLER}.lora_A.weight": a, f"{POOLER}.lora_B.weight": b}
    saved = import_peft(write(tmp_path / "peft", tensors(**more), **options), base)
    expected = base.weights["bert/pooler/dense/kernel"] + factor * (b @ a).T
    np.testing.assert_allclose(saved.weights["bert/pooler/dense/kernel"], expected, rtol=1e-6)
    bias = base.weights["bert/pooler/dense/bias"]
    np.testing.assert_array_equal(saved.weights["bert/pooler/dense/bias"], bias)
    assert contents.tuning_of(saved.config).train_pooler
    assert contents.adapter_of(saved.config).projections == ("query",)


def test_a_base_without_a_pooler(base, tmp_path):
    without = dict(base.weights)
    pooler = {part: without.pop(f"bert/pooler/dense/{part}") for part in ("kernel", "bias")}
    bare = load_base(BASE)
    object.__setattr__(bare, "stored_weights", without)
    plain = write(tmp_path / "plain")
    lora = {f"{POOLER}.lora_A.weight": ONES, f"{POOLER}.lora_B.weight": ONES.T}
    for folder in (plain, write(tmp_path / "lora", tensors(**lora))):
        with raises_code("unsupported", "pooler"):
            import_peft(folder, bare)
    own = {f"{POOLER}.weight": pooler["kernel"].T, f"{POOLER}.bias": pooler["bias"]}
    import_peft(write(tmp_path / "own", tensors(**own)), bare)


WARNINGS = {  # Options, layers in the file, and what the warning names.
    "another base": ({"base_model_name_or_path": "bert-base-cased"}, (0, 1), "bert-base-cased"),
    "the same base": ({"base_model_name_or_path": "somewhere/else/base"}, (0, 1), None),
    "no base": ({"base_model_name_or_path": None}, (0, 1), None),
    "lost weights": (
        {"target_modules": ["query"]},
        (1,),
        "bert.encoder.layer.0.attention.self.query",
    ),
    "all weights": ({"target_modules": ["query"]}, (0, 1), None),
    "whole names": (
        {"target_modules": ["bert.encoder.layer.1.attention.self.query"]},
        (1,),
        None,
    ),
    "a pattern": (
        {"target_modules": r".*layer\.\d+\..*(query|key)"},
        (1,),
        "bert.encoder.layer.0.attention.self.key",
    ),
    "a pattern of one layer": ({"target_modules": r".*layer\.[1-3]\..*self\.query"}, (1,), None),
    "a slow pattern": ({"target_modules": "(.*)*query"}, (1,), None),
    "a wrong pattern": ({"target_modules": "(.*query"}, (1,), None),
    "chosen layers": ({"target_modules": ["query"], "layers_to_transform": [1]}, (1,), None),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_warnings(case, base, tmp_path, caplog):
    options, layers, named = WARNINGS[case]
    with caplog.at_level(logging.WARNING):
        import_peft(write(tmp_path / "peft", tensors(layers), **options), base)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == bool(named) and all(named in message for message in said)


def test_number_of_labels(base, tmp_path):
    with raises_code("missing", "3 outputs"):
        import_peft(write(tmp_path / "peft"), base, labels=["a", "b"])


def test_pickles_are_not_read(base, tmp_path):
    folder = write(tmp_path / "peft")
    os.rename(f"{folder}/adapter_model.safetensors", f"{folder}/adapter_model.bin")
    with raises_code("not_found", "never read"):
        import_peft(folder, base)


def test_commands(tmp_path, capsys):
    source = write(tmp_path / "peft")
    ours, back = str(tmp_path / "ours"), str(tmp_path / "back")
    labels = ["--labels=a,b,c", f"--base_model={BASE}"]
    assert main(["import", source, *labels, f"--output={ours}"]) == 0
    assert main(["verify", source]) == 1
    assert main(["verify", ours]) == 0
    capsys.readouterr()
    assert main(["list", str(tmp_path)]) == 0
    assert f"{source}: of the library `peft`; `import` reads it" in capsys.readouterr().out
    exported = ["export", ours, "--format=peft", f"--base_model={BASE}", f"--output={back}"]
    assert main(exported) == 0
    given = safetensors.numpy.load_file(f"{back}/adapter_model.safetensors")
    assert set(given) == set(tensors())
    for name, array in tensors().items():
        np.testing.assert_array_equal(given[name], array)
    assert "Files for PEFT" in capsys.readouterr().out


def test_other_adapters_are_not_exported(base, tmp_path):
    bottleneck = import_adapter(str(HUB / "houlsby"), base)
    with raises_code("unsupported", "LORA"):
        export_peft(bottleneck, str(tmp_path / "out"), base)
