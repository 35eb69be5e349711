"""Heads of AdapterHub's library, in both directions."""

import json
import shutil

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.variable_specs import POOLER
from adapter_bert_tf.base import load_base
from adapter_bert_tf.interop.adapterhub_files.exporting import export_adapter
from adapter_bert_tf.interop.adapterhub_files.importing import import_adapter
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests.interop.hub_files import HUB, edit_json, edit_weights
from tests.refusals import raises_code

HEAD_CONFIG, HEAD_WEIGHTS = "head_config.json", "model_head.safetensors"
NAME = "houlsby"
FROZEN_NORMS = Tuning(train_layer_norm=False)
INPUTS = {
    "input_word_ids": np.array([[2, 7, 9, 3], [2, 11, 3, 0]], "i4"),
    "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], "i4"),
    "input_type_ids": np.zeros((2, 4), "i4"),
}
KERNEL = np.linspace(-1, 1, 48, dtype="f4").reshape(3, 16)  # PyTorch's order.
BIAS = np.array([0.1, -0.2, 0.3], "f4")


@pytest.fixture(scope="module")
def base():
    return load_base(str(HUB / "base"))


def _static(model, layer, count, **values):
    """What the library saves of one of transformers' own models."""

    def change(folder):
        labels = {f"LABEL_{i}": i for i in range(count)}
        edit_json(
            folder, HEAD_CONFIG, config=None, name=None, model_class=model, num_labels=count,
            label2id=labels, **values,
        )  # fmt: skip
        layers = {f"{layer}.weight": KERNEL[:count], f"{layer}.bias": BIAS[:count]}
        edit_weights(folder, HEAD_WEIGHTS, lambda t: layers)

    return change


def _one_layer(count, **values):
    """A flexible head of one layer."""

    def change(folder):
        config = {f"config_{name}": value for name, value in values.items()}
        edit_json(
            folder, HEAD_CONFIG, config_layers=1, config_label2id=None, config_num_labels=count,
            **config,
        )  # fmt: skip
        layers = {f"heads.{NAME}.1.weight": KERNEL[:count], f"heads.{NAME}.1.bias": BIAS[:count]}
        edit_weights(folder, HEAD_WEIGHTS, lambda t: layers)

    return change


QA = "question_answering"
HEADS = {  # The change, the type's fields and the labels.
    "on the pooler": (
        _one_layer(3, use_pooler=True),
        ("classification", False, ["0", "1", "2"]),
    ),
    "scores on the pooler": (_one_layer(1, use_pooler=True), ("classification", True, [])),
    "label sets on the pooler": (
        _one_layer(3, use_pooler=True, head_type="multilabel_classification"),
        ("multi_label", False, ["0", "1", "2"]),
    ),
    "questions": (_one_layer(2, head_type=QA), ("span", False, ["start", "end"])),
    "a static classifier": (
        _static("BertForSequenceClassification", "classifier", 3),
        ("classification", False, ["LABEL_0", "LABEL_1", "LABEL_2"]),
    ),
    "a static regression": (
        _static("BertForSequenceClassification", "classifier", 1),
        ("classification", True, []),
    ),
    "tags": (_one_layer(3, head_type="tagging"), ("tags", False, ["0", "1", "2"])),
    "static tags": (
        _static("BertForTokenClassification", "classifier", 3),
        ("tags", False, ["LABEL_0", "LABEL_1", "LABEL_2"]),
    ),
    "static questions": (
        _static("BertForQuestionAnswering", "qa_outputs", 2),
        ("span", False, ["start", "end"]),
    ),
}


@pytest.mark.parametrize("case", HEADS)
def test_heads_of_one_layer(case, base, tmp_path):
    """They read the base's own pooler, or each position; the encoder is that of the adapter."""
    change, fields = HEADS[case]
    folder = shutil.copytree(HUB / NAME, tmp_path / "a")
    change(folder)
    saved = import_adapter(str(folder), base, texts=2, max_seq_length=20)
    config = saved.config
    assert (config["head"], config["regression"], config["labels"]) == fields
    assert config["inputs"]["max_seq_length"] == 20 and f"{POOLER}/kernel" not in saved.weights
    save_adapter(str(tmp_path / "ours"), config, saved.weights)
    model = AdapterModel(base)
    model.load_adapter(str(tmp_path / "ours"))
    found = model(INPUTS, NAME).numpy()

    count = saved.weights["head/bias"].size
    encoder = base.build_encoder(AdapterConfig.from_dict(config["adapter"]))
    for name, variable in encoder.named_variables().items():
        if name in saved.weights:
            variable.assign(saved.weights[name])
    output = {name: value.numpy() for name, value in encoder(INPUTS).items()}
    if fields[0] == "tags":
        expected = output["sequence_output"] @ KERNEL[:count].T + BIAS[:count]
    elif fields[0] == "span":
        scores = output["sequence_output"] @ KERNEL[:count].T + BIAS[:count]
        is_real = INPUTS["input_mask"][:, None] == 1
        expected = np.where(is_real, scores.transpose(0, 2, 1), found)
    else:
        expected = output["pooled_output"] @ KERNEL[:count].T + BIAS[:count]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_labels_of_a_static_head_are_given(base, tmp_path):
    folder = shutil.copytree(HUB / NAME, tmp_path / "a")
    _static("BertForSequenceClassification", "classifier", 3)(folder)
    assert import_adapter(str(folder), base, labels=list("abc")).config["labels"] == list("abc")
    with raises_code("mismatch", "same number"):
        import_adapter(str(folder), base, labels=list("ab"))


def test_a_base_without_a_pooler(base, tmp_path):
    """A head of one layer reads a pooler that nothing holds; one of two layers brings its own."""
    without = dict(base.weights)
    del without[f"{POOLER}/kernel"], without[f"{POOLER}/bias"]
    bare = load_base(str(HUB / "base"))
    object.__setattr__(bare, "stored_weights", without)
    folder = shutil.copytree(HUB / NAME, tmp_path / "a")
    import_adapter(str(folder), bare)
    _one_layer(3, use_pooler=True)(folder)
    with raises_code("unsupported", "pooler"):
        import_adapter(str(folder), bare)


REFUSED = {
    "no pooler": (_one_layer(3), "unsupported: 'layers': 1"),
    "another static model": (
        _static("BertForMaskedLM", "classifier", 3),
        "unsupported: BertForMaskedLM",
    ),
    "choices": (_one_layer(3, head_type="multiple_choice"), "unsupported: multiple_choice"),
    "two layers for tags": (
        lambda d: edit_json(d, HEAD_CONFIG, config_head_type="tagging"),
        "unsupported: 'layers': 2",
    ),
    "two layers on the pooler": (
        lambda d: edit_json(d, HEAD_CONFIG, config_use_pooler=True),
        "unsupported: use_pooler",
    ),
    "two layers for questions": (
        lambda d: edit_json(d, HEAD_CONFIG, config_head_type=QA),
        "unsupported: 'layers': 2",
    ),
    "three outputs for questions": (_one_layer(3, head_type=QA), "unsupported: 2 outputs"),
    "no bias": (_one_layer(3, use_pooler=True, bias=False), "unsupported: 'bias': False"),
    "a list": (lambda d: edit_json(d, HEAD_CONFIG, config=[]), "damaged: head's config"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_heads_are_refused(case, base, tmp_path):
    change, error = REFUSED[case]
    folder = shutil.copytree(HUB / NAME, tmp_path / "a")
    change(folder)
    with raises_code(error):
        import_adapter(str(folder), base)


EXPORTED = {  # Task type, labels, the library's options of the head.
    "classes": (
        ("classification", ["b", "a"]),
        {"head_type": "classification", "layers": 2, "label2id": {"b": 0, "a": 1}},
    ),
    "scores": (
        ("classification", []),
        {"head_type": "classification", "num_labels": 1, "label2id": None},
    ),
    "label sets": (
        ("multi_label", ["b", "a", "c"]),
        {
            "head_type": "multilabel_classification",
            "num_labels": 3,
            "label2id": {"b": 0, "a": 1, "c": 2},
        },
    ),
    "questions": (("span", []), {"head_type": QA, "layers": 1, "num_labels": 2}),
    "tags": (
        ("tags", ["O", "B-A", "I-A"]),
        {"head_type": "tagging", "layers": 1, "label2id": {"O": 0, "B-A": 1, "I-A": 2}},
    ),
}


@pytest.mark.parametrize("case", EXPORTED)
def test_exporting_and_importing_gives_the_adapter_back(case, base, tmp_path):
    (head, labels), options = EXPORTED[case]
    model, rng = AdapterModel(base), np.random.default_rng(0)
    config = AdapterConfig(5, activation="linear", layer_sizes={0: 3})
    trained = model.add_adapter("my.task", labels, config, head, FROZEN_NORMS, max_seq_length=20)
    for variable in trained.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.1)
    model.save_adapter("my.task", str(tmp_path / "ours"))
    saved = load_adapter(str(tmp_path / "ours"))
    assert export_adapter(saved, str(tmp_path / "hub"), base) == "my_task"
    found = json.loads((tmp_path / "hub" / HEAD_CONFIG).read_text())["config"]
    assert found | options == found
    hub_config = json.loads((tmp_path / "hub" / "adapter_config.json").read_text())["config"]
    factors = hub_config["reduction_factor"]
    assert {layer: int(16 // factor) for layer, factor in factors.items()} == {"0": 3, "1": 5}

    again = import_adapter(str(tmp_path / "hub"), base, max_seq_length=20)
    for key in ("head", "labels", "regression"):
        assert again.config[key] == saved.config[key]
    adapter = AdapterConfig.from_dict(again.config["adapter"])
    assert [adapter.size_of(i) for i in (0, 1)] == [3, 5]
    for name, value in saved.weights.items():
        np.testing.assert_array_equal(again.weights[name], value)


NAMES = {"mrpc": "mrpc", "a.b": "a_b", "type": "type_adapter", "_modules": "_modules_adapter"}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_pytorch_cannot_hold(name, base, tmp_path):
    saved = import_adapter(str(HUB / "pfeiffer"), base, name)
    saved.config.pop("name", None)
    assert export_adapter(saved, str(tmp_path / "hub"), base) == NAMES[name]
    assert import_adapter(str(tmp_path / "hub"), base).config["task"] == NAMES[name]
