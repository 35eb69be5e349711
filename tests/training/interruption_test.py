"""Being asked to stop: what is saved, what is said, and who hears of it."""

import json
import math
import signal

import pytest

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.errors import Interrupted
from adapter_bert_tf.run.batch_sizes import steps_per_loop
from adapter_bert_tf.training.checkpoints import SaveCheckpoints
from adapter_bert_tf.training.interruption import StopRelay, StopRequest
from adapter_bert_tf.training.progress import MetricsLog


class Saves(list):
    """In place of `Checkpoints`: the steps that were saved."""

    save = list.append


def asked_to_stop():
    stop = StopRequest()
    stop.signal_number = signal.SIGTERM
    return stop


def test_what_is_said_to_be_saved_is():
    saves = Saves()
    callback = SaveCheckpoints(saves, asked_to_stop(), 4, 100, 1000)
    with pytest.raises(Interrupted, match="Stopped at step 7, which is saved"):
        callback.on_train_batch_end(2, {"loss": 0.5})
    assert saves == [7]


def test_a_loss_that_is_not_finite_is_neither_saved_nor_said_to_be():
    saves = Saves()
    SaveCheckpoints(saves, asked_to_stop(), 4, 1, 1000).on_train_batch_end(2, {"loss": math.nan})
    assert saves == []


def test_a_worker_tells_the_first_one(tmp_path):
    path = tmp_path / "stop"
    path.write_text("")  # Of an earlier run.
    chief, worker = StopRequest(), asked_to_stop()
    hears, tells = StopRelay(str(path), chief, True), StopRelay(str(path), worker, False)
    assert not path.exists()
    hears.on_train_batch_end(0)
    assert chief.signal_number is None
    tells.on_train_batch_end(0)
    hears.polled_at = 0.0
    hears.on_train_batch_end(1)
    assert chief.signal_number == signal.SIGTERM and not path.exists()


@pytest.mark.parametrize(
    ("asked", "tpu", "every", "expected"),
    [
        (None, False, 1000, 1),
        (None, True, 1000, 100),
        (None, True, 10, 10),
        (7, False, 1000, 7),
        (1000, True, 50, 50),
    ],
)
def test_no_call_is_longer_than_the_time_between_checkpoints(asked, tpu, every, expected):
    values = {"iterations_per_loop": asked, "use_tpu": tpu, "save_checkpoints_steps": every}
    config = RunConfig.from_values(Command.CLASSIFIER, values)
    assert steps_per_loop(config) == expected


def test_rows_that_a_power_cut_damaged_are_left_out(tmp_path):
    row = json.dumps({"step": 1, "loss": 0.5})
    (tmp_path / "metrics.jsonl").write_bytes(row.encode() + b"\n\0\0\0\n\xff\n[1]\n" + b'{"st')
    MetricsLog(str(tmp_path), start=4).close()
    assert (tmp_path / "metrics.jsonl").read_text() == row + "\n"
