"""What XLA compiles, and what is printed while it does."""

import contextlib
import json
import re

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.training import inference
from adapter_bert_tf.training.device import compilation
from adapter_bert_tf.training.device.compilation import CompiledStep, is_compiled
from adapter_bert_tf.training.device.precision import precision_scope
from adapter_bert_tf.training.loop import TrainingSettings, train
from tests.training import tiny


@pytest.fixture(autouse=True)
def seconds_file(tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPTER_BERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / compilation.SECONDS_FILE


@pytest.mark.parametrize(
    ("asked", "gpus", "replicas", "expected"),
    [
        (None, 0, 1, False),
        (None, 1, 1, True),
        (None, 2, 1, True),  # One of two GPUs is used.
        (None, 2, 2, False),
        (None, 0, 8, False),  # A TPU.
        (False, 1, 1, False),
        (True, 0, 1, True),
        (True, 2, 2, True),
    ],
)
def test_which_steps_are_compiled(asked, gpus, replicas, expected):
    assert is_compiled(asked, gpus, replicas) == expected


def test_without_its_tools_xla_compiles_nothing_by_default(monkeypatch, caplog):
    monkeypatch.setattr(compilation.xla_tools, "missing_tools", lambda: ("ptxas",))
    assert compilation.missing_on(0) == () and not caplog.records
    assert not is_compiled(None, 1, 1, compilation.missing_on(1))
    assert "ptxas" in caplog.text
    assert is_compiled(True, 1, 1, ("ptxas",))  # Which ends with TensorFlow's error.


def new_step(traces):
    def run(batch):
        traces.append(batch["ids"].shape)
        return tf.reduce_sum(batch["ids"], 1)

    spec = {"ids": tf.TensorSpec([2, None], tf.int32)}
    return CompiledStep(run, "test step", 1234, spec)


def ones(length):
    return {"ids": tf.ones([2, length], tf.int32)}


def test_a_shape_is_announced_once_and_traced_never_again(capsys, seconds_file):
    traces = []
    step = new_step(traces)
    results = [step(ones(length)).numpy().tolist() for length in (3, 5, 3, 5)]
    assert results == [[3, 3], [5, 5], [3, 3], [5, 5]]
    assert [shape.as_list() for shape in traces] == [[2, None]]
    lines = capsys.readouterr().out.splitlines()
    begins = [f"XLA compiles the test step for batches of 2 x {length}." for length in (3, 5)]
    assert lines[::2] == begins
    done = r"XLA compiled the test step for batches of 2 x (3|5) in \d+ s\."
    assert all(re.fullmatch(done, line) for line in lines[1::2]) and len(lines) == 4
    assert len(json.loads(seconds_file.read_text())) == 2


@pytest.mark.parametrize("damage", [None, "", "[1]", "{", '{"a": "b"}', "[" * 10_000])
def test_the_time_of_the_last_run_is_told(damage, capsys, seconds_file):
    new_step([])(ones(3))
    if damage is None:
        key, _ = next(iter(json.loads(seconds_file.read_text()).items()))
        damage = json.dumps({key: 17.4})
        assert "1,234 parameters" in key
    capsys.readouterr()
    seconds_file.write_text(damage)
    new_step([])(ones(3))
    first = capsys.readouterr().out.splitlines()[0]
    assert ("(last time 17 s)" in first) == ("17.4" in damage)
    assert json.loads(seconds_file.read_text())


def test_a_cache_that_cannot_be_written_changes_nothing(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ADAPTER_BERT_CACHE", str(tmp_path / "file"))
    assert new_step([])(ones(3)).numpy().tolist() == [3, 3]
    assert capsys.readouterr().out.count("XLA") == 2


@pytest.mark.parametrize("compiled", [False, True])
def test_training_and_evaluation_tell_of_each_shape(compiled, capsys):
    model, trained = tiny.setup_toy()
    tiny.without_dropout(model)
    settings = TrainingSettings(3, tiny.ROWS, 1e-1, jit_compile=compiled)
    evaluation = tiny.scripted(model, (0.1, 0.2, 0.3), every=1, logits_of=tiny.predicted)
    train(model, trained, tiny.toy_batches(3), settings, evaluation)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("XLA")]
    kinds = [re.sub(r" in \d+ s", "", line) for line in lines]
    expected = [
        f"XLA {verb} the {step} step for batches of 4 x 3."
        for step in ("training", "evaluation")
        for verb in ("compiles", "compiled")
    ]
    assert kinds == (expected if compiled else [])
    # The weights of compiled steps are those of the others.
    plain, plain_trained = tiny.setup_toy()
    tiny.without_dropout(plain)
    train(plain, plain_trained, tiny.toy_batches(3), TrainingSettings(3, tiny.ROWS, 1e-1))
    for name, value in tiny.values(plain_trained).items():
        np.testing.assert_allclose(trained[name].numpy(), value, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_strategy_of_one_device_is_compiled(precision):
    """With dropout, whose masks depend on the replica."""
    values = {}
    for devices in (None, ["/cpu:0"]):
        strategy = tf.distribute.MirroredStrategy(devices) if devices else None
        with strategy.scope() if strategy else contextlib.nullcontext(), precision_scope(precision):
            model, trained = tiny.setup_toy()
        settings = TrainingSettings(3, tiny.ROWS, 1e-1, jit_compile=True)
        evaluation = tiny.scripted(model, (0.1, 0.2, 0.3), every=3, logits_of=tiny.predicted)
        train(model, trained, tiny.toy_batches(3), settings, evaluation)
        values[bool(strategy)] = tiny.values(trained)
    for name, value in values[False].items():
        np.testing.assert_allclose(values[True][name], value, atol=1e-6, err_msg=name)


def test_evaluation_compiles_few_shapes(capsys):
    """Batches of one length share a program, also in a second evaluation."""
    model, _ = tiny.setup_toy()
    model.compile(jit_compile=True)
    inputs = [tiny.vectors(seed)[0] for seed in range(3)]
    for _ in range(2):
        found = list(inference.predict(model, lambda share: tiny.dataset(inputs, share)))
        np.testing.assert_allclose(np.concatenate(found), tiny.called(model, inputs), atol=1e-5)
    assert capsys.readouterr().out.count("XLA compiles") == 1
