"""The precision of a run: decided by the card, kept when another card goes on."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import config

from adapter_bert_tf.run import decided_precision
from adapter_bert_tf.training import loop
from tests import support
from tests.run.earlier_defaults_test import without
from tests.runs import train, try_to_train, write_mrpc

SHORT = ("--num_train_epochs=1", "--learning_rate=1e-2")
T4, H100 = (7, 5), (9, 0)


@pytest.fixture
def mrpc(tmp_path):
    return write_mrpc(tmp_path / "MRPC", rows=32)


@pytest.fixture
def use(monkeypatch):
    """A function that makes the GPUs of this machine up."""
    return lambda *gpus: monkeypatch.setattr(decided_precision, "gpu_capabilities", lambda: gpus)


def record_of(out):
    return json.loads((out / "run.json").read_text())


def precision_of(out):
    """That of the record, which is also that of the checkpoints' owner."""
    owner = json.loads((out / "checkpoints" / "flags.json").read_text())
    recorded = record_of(out)["flags"]["precision"]
    assert owner["precision"] == recorded
    return recorded


@pytest.mark.parametrize(
    ("gpus", "more", "expected", "line"),
    [
        ([], (), "float32", None),
        ([T4], (), "float16", "Precision: float16 (GPU, compute capability 7.5)."),
        ([H100], ("--precision=auto",), "bfloat16", "Precision: bfloat16 (GPU, compute"),
        ([None], (), "float32", "Precision: float32 (GPU, compute capability unknown)."),
        ([H100], ("--precision=float32",), "float32", None),
    ],
)
def test_the_card_decides(
    gpus, more, expected, line, use, mrpc, tiny_base_folder, tmp_path, capsys
):
    use(*gpus)
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT, *more)
    printed = capsys.readouterr().out
    assert precision_of(out) == expected
    assert printed.count(line) == 1 if line else "Precision" not in printed
    assert record_of(out).get("skipped_steps") == (0 if expected == "float16" else None)


def test_a_processor_with_bfloat16_and_its_saved_model(
    mrpc, tiny_base_folder, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(decided_precision, "multiplies_bfloat16", lambda: True)
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT, "--do_export")
    assert precision_of(out) == "bfloat16_base"
    assert capsys.readouterr().out.count("Precision: bfloat16_base (CPU with AMX") == 1
    graph = tf.saved_model.load(str(out / "saved_model")).signatures["serving_default"].graph
    functions = graph.as_graph_def().library.function
    types = {str(node.attr["T"].type) for function in functions for node in function.node_def}
    assert str(tf.float32.as_datatype_enum) in types
    assert str(tf.bfloat16.as_datatype_enum) not in types


def test_another_card_goes_on_with_the_precision_of_the_first(
    use, mrpc, tiny_base_folder, tmp_path, capsys
):
    use(T4)
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT)
    whole = (out / "adapter" / "adapter.safetensors").read_bytes()
    for arguments in ((), ("--precision=auto",), ("--overwrite",)):
        (out / "run.json").unlink()
        use(H100)
        capsys.readouterr()
        train(mrpc, tiny_base_folder, out, *SHORT, *arguments)
        assert "Precision: float16, in which this run started." in capsys.readouterr().out
        assert precision_of(out) == "float16"
        assert (out / "adapter" / "adapter.safetensors").read_bytes() == whole
    (out / "run.json").unlink()
    message = try_to_train(mrpc, tiny_base_folder, out, *SHORT, "--precision=bfloat16")
    assert "--precision: 'float16' there, 'bfloat16' here" in message


def test_a_finished_run_is_found_on_any_card(use, mrpc, tiny_base_folder, tmp_path, capsys):
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT)
    for path in (out / "run.json", out / "checkpoints" / "flags.json"):
        without(path, "precision")  # As of a version that had no such setting.
    use(H100)
    capsys.readouterr()
    train(mrpc, tiny_base_folder, out, *SHORT)
    assert "holds the results of this very run" in capsys.readouterr().out
    out = train(mrpc, tiny_base_folder, out, *SHORT, "--overwrite")
    assert precision_of(out) == "bfloat16"


@pytest.mark.slow
def test_a_sweep_goes_on_with_its_precision(use, mrpc, tiny_base_folder, tmp_path):
    arguments = (*SHORT, "--do_eval", "--num_trials=2")
    use(T4)
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *arguments)
    before = (out / "seed=0" / "run.json").read_text()
    (out / "run.json").unlink()
    (out / "seed=1" / "run.json").unlink()
    use(H100)
    train(mrpc, tiny_base_folder, out, *arguments)
    assert (out / "seed=0" / "run.json").read_text() == before
    assert record_of(out / "seed=1")["flags"]["precision"] == "float16"
    assert record_of(out)["flags"]["precision"] == "float16"


def test_the_record_counts_skipped_steps(mrpc, tiny_base_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loop, "with_loss_scaling", _too_large(loop.with_loss_scaling))
    flags = (*SHORT, "--precision=float16")
    assert try_to_train(mrpc, tiny_base_folder, tmp_path / "out", *flags) is None
    record = record_of(tmp_path / "out")
    assert record["skipped_steps"] == record["global_step"] == 4
    assert "4 of 4 steps were skipped" in capsys.readouterr().out


def _too_large(with_loss_scaling):
    def make(optimizer):
        scaled = with_loss_scaling(optimizer)
        scaled._loss_scale.current_loss_scale.assign(2.0**60)
        return scaled

    return make


@pytest.mark.parametrize("precision", support.seldom(["bfloat16", "float16"], ("float16",)))
def test_a_saved_model_computes_in_float32(precision, mrpc, tiny_base_folder, tmp_path):
    """As the adapter does in `predict`; CPUs compute slowly in half precision."""
    out = train(
        *(mrpc, tiny_base_folder, tmp_path / "out", *SHORT),
        *("--do_export", "--do_predict", f"--precision={precision}"),
    )
    rows = (out / "test_results.tsv").read_text().splitlines()
    predicted = np.array([[float(x) for x in row.split("\t")] for row in rows])
    lines = (mrpc / "test.tsv").read_text().splitlines()[1:]
    first, second = zip(*(line.split("\t")[3:] for line in lines), strict=True)
    loaded = tf.saved_model.load(out / "saved_model")
    answer = loaded.signatures["serving_default"]
    dtypes = {
        node.attr["T"].type
        for function in answer.graph.as_graph_def().library.function
        for node in function.node_def
    }
    assert tf.float32.as_datatype_enum in dtypes
    assert not {tf.bfloat16.as_datatype_enum, tf.float16.as_datatype_enum} & dtypes
    outputs = answer(text_a=tf.constant(first), text_b=tf.constant(second))
    np.testing.assert_allclose(outputs["probabilities"], predicted, atol=2e-2)


def test_the_record_says_how_was_computed(mrpc, tiny_base_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    enabled = tf.config.experimental.tensor_float_32_execution_enabled
    try:
        more = ("--deterministic", "--notf32")
        out = train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT, *more)
        assert not enabled() and config.is_op_determinism_enabled()
        train(mrpc, tiny_base_folder, tmp_path / "other", *SHORT)
        assert enabled()
    finally:
        config.disable_op_determinism()
    settings = record_of(out)["flags"]
    assert settings["deterministic"] and not settings["tf32"]


def test_float16_has_no_loss_scaling_on_a_tpu(mrpc, tiny_base_folder, tmp_path):
    message = try_to_train(
        mrpc, tiny_base_folder, tmp_path, "--precision=float16", "--use_tpu", "--tpu_name=local"
    )
    assert "--precision=float16" in message and "--precision=bfloat16" in message
