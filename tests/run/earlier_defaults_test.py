"""What another version began goes on with its defaults."""

import json

import pytest

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.data.padding import FEW_LENGTHS
from adapter_bert_tf.run.batch_sizes import batches_of, compiles
from adapter_bert_tf.run.saved_settings import with_earlier_defaults
from adapter_bert_tf.training.device import compilation
from tests.runs import train, try_to_train, write_mrpc

SHORT = ("--num_train_epochs=1", "--learning_rate=1e-2")


@pytest.fixture
def mrpc(tmp_path):
    return write_mrpc(tmp_path / "MRPC", rows=32)


def order_of(out):
    return json.loads((out / "run.json").read_text())["flags"]["group_by_length"]


def without(path, name):
    """Makes a record one of a version that had no such flag."""
    record = json.loads(path.read_text())
    del (record if name in record else record["flags"])[name]
    path.write_text(json.dumps(record))


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_its_order(mrpc, tiny_base_folder, tmp_path):
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT, "--group_by_length=run")
    (out / "run.json").unlink()
    without(out / "checkpoints" / "flags.json", "group_by_length")
    for arguments in ((), ("--overwrite",)):
        train(mrpc, tiny_base_folder, out, *SHORT, *arguments)
        assert order_of(out) == "run"
        (out / "run.json").unlink()
    assert "--group_by_length: 'run' there, 'no' here" in try_to_train(
        mrpc, tiny_base_folder, out, *SHORT, "--group_by_length=no"
    )


@pytest.mark.slow
def test_a_record_is_repeated_in_its_order(mrpc, tiny_base_folder, tmp_path):
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT)
    assert order_of(out) == "epoch"
    without(out / "run.json", "group_by_length")
    again = ("--config", out / "run.json", "--overwrite")
    assert order_of(train(mrpc, tiny_base_folder, tmp_path / "again", *again)) == "run"
    assert order_of(train(mrpc, tiny_base_folder, out, *SHORT, "--overwrite")) == "epoch"


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on_with_its_order(mrpc, tiny_base_folder, tmp_path):
    arguments = (*SHORT, "--do_eval", "--num_trials=2")
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *arguments, "--group_by_length=run")
    for folder in ("seed=0", "seed=1"):
        without(out / folder / "checkpoints" / "flags.json", "group_by_length")
    without(out / "sweep.json", "group_by_length")
    without(out / "seed=0" / "run.json", "group_by_length")
    (out / "seed=1" / "run.json").unlink()
    before = (out / "seed=0" / "run.json").read_text()
    train(mrpc, tiny_base_folder, out, *arguments)
    assert (out / "seed=0" / "run.json").read_text() == before
    assert order_of(out / "seed=1") == "run"


def test_a_damaged_order_is_not_taken_over(mrpc, tiny_base_folder, tmp_path):
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT)
    (out / "run.json").unlink()
    path = out / "checkpoints" / "flags.json"
    for damage in ("dreißig", 7, None, ["run"]):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"group_by_length": damage}))
        message = try_to_train(mrpc, tiny_base_folder, out, *SHORT)
        assert "holds the checkpoints of another run: --group_by_length" in message


@pytest.mark.parametrize(
    ("recorded", "given", "expected"),
    [
        ({"jit_compile": False}, {}, False),  # A run that an earlier version began on a GPU.
        ({}, {}, False),
        ({"jit_compile": None}, {}, True),
        ({"jit_compile": True}, {}, True),
        ({"jit_compile": False}, {"jit_compile": True}, True),
        ({"jit_compile": None}, {"jit_compile": False}, False),
    ],
)
def test_what_an_earlier_version_began_on_a_gpu_is_not_compiled(
    recorded, given, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(compilation, "gpu_count", lambda: 1)
    path = tmp_path / "checkpoints" / "flags.json"
    path.parent.mkdir()
    path.write_text(json.dumps(recorded))
    config = RunConfig.from_values(
        Command.CLASSIFIER, {"output_dir": str(tmp_path), "do_train": True} | given, given
    )
    device = with_earlier_defaults(config).device
    assert compiles(device, replicas=1) == expected
    assert batches_of(config, 1).pad_to == (8 if given == {"jit_compile": False} else FEW_LENGTHS)
