"""Folders written before a flag existed: a flag that a record does not name had its default."""

import json

import pytest

from tests.runs import train, try_to_train, write_mrpc

pytestmark = pytest.mark.long

NEWER = ("eval_every_steps", "keep", "patience", "adapter_dtype")  # Two with a default.
ONE_EPOCH = "--num_train_epochs=1"


@pytest.fixture
def mrpc(tmp_path):
    return write_mrpc(tmp_path / "MRPC")


def forget(path, *within):
    """Removes the newer flags from a record."""
    record = json.loads(path.read_text())
    flags = record
    for key in within:
        flags = flags[key]
    for name in NEWER:
        del flags[name]
    path.write_text(json.dumps(record))


def test_an_interrupted_run_is_taken_up(mrpc, tiny_base_folder, tmp_path, capsys):
    out = train(mrpc, tiny_base_folder, tmp_path / "out", ONE_EPOCH)
    (out / "run.json").unlink()
    forget(out / "checkpoints" / "flags.json")
    error = try_to_train(mrpc, tiny_base_folder, out, ONE_EPOCH, "--adapter_dtype=float16")
    assert "--adapter_dtype: 'float32' there, 'float16' here" in error
    train(mrpc, tiny_base_folder, out, ONE_EPOCH)
    assert json.loads((out / "run.json").read_text())["resumed_from_step"] == 8


def test_a_finished_run_is_finished(mrpc, tiny_base_folder, tmp_path, capsys):
    out = train(mrpc, tiny_base_folder, tmp_path / "out", ONE_EPOCH)
    forget(out / "run.json", "flags")
    forget(out / "checkpoints" / "flags.json")
    capsys.readouterr()
    train(mrpc, tiny_base_folder, out, ONE_EPOCH)
    assert "holds the results of this very run" in capsys.readouterr().out


@pytest.mark.long
def test_a_sweep_is_gone_on_with(mrpc, tiny_base_folder, tmp_path, capsys):
    arguments = [ONE_EPOCH, "--do_eval", "--num_trials=2"]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *arguments)
    forget(out / "sweep.json", "flags")
    for seed in range(2):
        forget(out / f"seed={seed}" / "run.json", "flags")
    error = try_to_train(mrpc, tiny_base_folder, out, *arguments, "--adapter_dtype=float16")
    assert "holds another sweep" in error
    capsys.readouterr()
    train(mrpc, tiny_base_folder, out, *arguments)
    assert "What --tuning=adapters trains" not in capsys.readouterr().out
