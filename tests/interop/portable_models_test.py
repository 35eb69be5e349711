"""ONNX and LiteRT models of one task: what their runtimes compute, and the files next to them."""

import importlib.util
import json

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.interop import litert, onnx_graph, portable_models
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests.interop.hub_files import HUB
from tests.refusals import raises_code

LENGTH = 12
needs_onnx = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("tf2onnx", "onnx", "onnxruntime"))),
    reason="needs the extra `onnx`",
)
FORMATS = [
    pytest.param("onnx", marks=[pytest.mark.parity, needs_onnx]),
    pytest.param("litert", marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def base():
    """Its activation is the exact GELU, which TensorFlow computes by `Erfc`."""
    return load_base(str(HUB / "base"))


TASKS = {  # Task type, labels, adapter, tuning.
    "classes": ("classification", "abc", AdapterConfig(4), Tuning()),
    "scores": ("classification", "", PRESETS["scaled_parallel"], Tuning()),
    "label sets": ("multi_label", "ab", PRESETS["pfeiffer"], Tuning(train_pooler=True)),
    "questions": ("span", "", AdapterConfig(4, activation="gelu_erf"), Tuning()),
    "tags": ("tags", ["O", "B-A", "I-A"], AdapterConfig(4), Tuning()),
    "own LayerNorms and sizes": (
        "classification",
        "ab",
        AdapterConfig(4, layer_norm=True, normalize_output=True, layer_sizes={1: 3}),
        Tuning(train_layer_norm=False),
    ),
    "a changed base": ("classification", "ab", None, Tuning("top_k", top_k=1)),
    "a fusion": ("classification", "ab", PRESETS["pfeiffer"], Tuning(train_layer_norm=False)),
}


def _save(base, case, folder):
    """Saves a task with random weights; returns the live model."""
    head, labels, adapter, tuning = TASKS[case]
    inputs = {"max_seq_length": LENGTH} | ({"max_query_length": 4} if head == "span" else {})
    model, rng = AdapterModel(base), np.random.default_rng(0)
    trained = model.add_adapter("task", list(labels), adapter, head, tuning, **inputs)
    for variable in trained.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.1)
    if case == "a fusion":
        model.add_adapter("other", ["x", "y"], adapter, tuning=tuning)
        model.add_fusion("fused", ["task", "other"], list(labels), **inputs)
        model.delete_adapter("task")
        model.save_adapter("fused", str(folder))
        model.load_adapter(str(folder), "task")
        return model
    model.save_adapter("task", str(folder))
    return model


def _inputs(rows, length):
    ids = np.random.default_rng(1).integers(5, 48, (rows, length)).astype("i4")
    mask = (np.arange(length) < np.linspace(3, length, rows)[:, None]).astype("i4")
    types = mask * (np.arange(length) > 4)
    return {"input_word_ids": ids * mask, "input_mask": mask, "input_type_ids": types.astype("i4")}


def _run_onnx(path, inputs):
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def _run_litert(path, inputs):
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        Interpreter = tf.lite.Interpreter
    interpreter = Interpreter(model_path=path)
    runner = interpreter.get_signature_runner("serving_default")
    return runner(**inputs)


RUN = {"onnx": _run_onnx, "litert": _run_litert}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", TASKS)
def test_runtimes_give_the_same_outputs(case, format, base, tmp_path):
    """For batches of one row and of five, in ONNX also of shorter rows."""
    model = _save(base, case, tmp_path / "adapter")
    saved, folder = load_adapter(str(tmp_path / "adapter")), tmp_path / "model"
    outputs = portable_models.export_model(saved, str(folder), base, format)
    values = json.loads((folder / "task.json").read_text())
    shorter = [(2, 7)] if portable_models.FORMATS[format].any_length else []
    for rows, length in [(1, LENGTH), (5, LENGTH), *shorter]:
        inputs = _inputs(rows, length)
        found = RUN[format](str(folder / values["model"]), inputs)
        assert sorted(found) == outputs == values["model_outputs"]
        logits = model(inputs, "task").numpy()
        if case == "questions":
            expected = {"start_logits": logits[:, 0], "end_logits": logits[:, 1]}
        elif case in ("classes", "tags"):
            expected = {"logits": logits, "probabilities": tf.nn.softmax(logits)}
        elif case == "label sets":
            expected = {"logits": logits, "probabilities": tf.sigmoid(logits)}
        else:
            expected = {"logits": logits}
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, atol=1e-5, rtol=1e-5, err_msg=name)


def test_files_next_to_the_model(base, tmp_path, monkeypatch):
    written = portable_models.FORMATS["onnx"]._replace(convert=lambda function: b"model")
    monkeypatch.setitem(portable_models.FORMATS, "onnx", written)
    _save(base, "classes", tmp_path / "adapter")
    arguments = [str(tmp_path / "adapter"), f"--base_model={HUB / 'base'}", "--format=onnx"]
    folder = tmp_path / "model"
    assert main(["export", *arguments, f"--output={folder}"]) == 0
    values = json.loads((folder / "task.json").read_text())
    assert (
        values
        | {
            "name": "task",
            "task_type": "classification",
            "labels": ["a", "b", "c"],
            "texts": 1,
            "max_seq_length": LENGTH,
            "model": "model.onnx",
        }
        == values
    )
    assert (folder / "model.onnx").read_bytes() == b"model"
    assert (folder / "vocab.txt").read_bytes() == (HUB / "base" / "vocab.txt").read_bytes()
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    settings = base.vocabulary.tokenizer
    assert tokenizer["do_lower_case"] is settings.lower_case
    assert tokenizer["strip_accents"] is settings.strip_accents
    assert (tokenizer["cls_token"], tokenizer["tokenize_chinese_chars"]) == ("[CLS]", True)
    assert tokenizer["model_max_length"] == LENGTH
    assert main(["export", *arguments, f"--output={folder}"]) == 1


def _sorted_text(x):
    """A function with an operation that neither format has."""
    return {"logits": tf.strings.length(tf.strings.as_string(x))}


@pytest.mark.parametrize(
    "convert",
    [
        pytest.param(onnx_graph.to_onnx, marks=[pytest.mark.parity, needs_onnx]),
        pytest.param(litert.to_litert, marks=pytest.mark.long),
    ],
)
def test_what_has_no_operation_is_named(convert):
    function = tf.function(_sorted_text).get_concrete_function(tf.TensorSpec([None], tf.float32))
    with raises_code("unsupported", "StringLength"):
        convert(function)


def test_a_missing_library_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name=name)

    monkeypatch.setattr(onnx_graph.importlib, "import_module", missing)
    with raises_code("unavailable", "adapter_bert_tf[onnx]"):
        onnx_graph.to_onnx(None)


def test_other_formats(base, tmp_path):
    with raises_code("invalid", "'torch'"):
        portable_models.export_model(None, str(tmp_path / "a"), base, "torch")
