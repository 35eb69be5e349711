"""`--parallel_trials`: the same bytes as one by one, stops, failures, lost processes."""

import csv
import hashlib
import os
import re
import signal
import time

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf import errors
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.runners.classification.runner import ClassificationRunner
from adapter_bert_tf.sweeps import parallel, worker
from adapter_bert_tf.sweeps.messages import Job, Outcome
from tests import processes
from tests.refusals import raises_code
from tests.runs import ROOT, train, write_mrpc

FLAGS = ("--do_eval", "--num_trials=3", "--learning_rate=1e-2", "--num_train_epochs=1")
MEASURED = ("seconds", "examples_per_second")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


@pytest.fixture(scope="module")
def one_by_one(mrpc, tiny_base_folder, tmp_path_factory):
    return train(mrpc, tiny_base_folder, tmp_path_factory.mktemp("one") / "out", *FLAGS)


def results(out):
    """Dict from a file, relative to `out`, to its digest; without files that hold times."""
    names = ("*.safetensors", "*.tsv", "eval_results.txt", "sweep.json")
    paths = [path for name in names for path in out.rglob(name)]
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }


def table(out):
    with (out / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [{name: row[name] for name in row if name not in MEASURED} for row in rows]


@pytest.mark.long
def test_two_at_a_time_write_the_same_bytes(one_by_one, mrpc, tiny_base_folder, tmp_path, capsys):
    flags = (*FLAGS, "--parallel_trials=2")
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *flags)
    assert results(out) == results(one_by_one) and len(results(out)) >= 8
    assert table(out) == table(one_by_one)
    printed = capsys.readouterr().out
    for seed in range(3):
        assert f"[seed={seed}] step 8/8" in printed and f"of 3: seed={seed} *" in printed
    assert "2 of 3 runs are done, ETA" in printed


def start(out, mrpc, base):
    """Starts three long runs, two at a time, in a process of its own."""
    flags = (*FLAGS, "--parallel_trials=2", "--num_train_epochs=3000", "--save_checkpoints_steps=9")
    words = ["run_classifier.py", "--task_name=mrpc", "--do_train", f"--data_dir={mrpc}", *flags]
    words += ["--max_seq_length=16", "--train_batch_size=8", f"--base_model={base}"]
    words += [f"--output_dir={out}"]
    return processes.Process(words, env=os.environ | {"PYTHONPATH": str(ROOT)})


def locks(out):
    return list(out.glob("seed=*/.lock"))


def saved(out):
    return list(out.glob("seed=*/checkpoints/checkpoint"))


def wait(condition, process=None, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.text[-3000:]
        assert time.monotonic() < end
        time.sleep(0.2)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_and_the_runs_continue(number, mrpc, tiny_base_folder, tmp_path):
    out = tmp_path / "out"
    process = start(out, mrpc, tiny_base_folder)
    wait(lambda: len(saved(out)) == 2, process)
    owners = [int(re.search('"pid": ([0-9]+)', path.read_text())[1]) for path in locks(out)]
    process.send_signal(number)
    killed = number == signal.SIGKILL
    assert process.wait(timeout=120) == (-number if killed else 128 + number)
    wait(lambda: not any(is_running(pid) for pid in owners))
    assert len(owners) == 2 and not locks(out)
    if not killed:
        steps = re.findall(r"\[seed=.\] Stopped at step (\d+), which is saved", process.text)
        assert len(steps) == 2 and "seed=2 *" not in process.text
    again = start(out, mrpc, tiny_base_folder)
    wait(lambda: again.text.count("Resuming from step") == 2, again)
    again.send_signal(signal.SIGTERM)
    assert again.wait(timeout=120) == 128 + signal.SIGTERM


class Failing(ClassificationRunner):
    """Fails as the seed says."""

    def check(self, config, saved):
        match config.data.task_name:
            case "rte":
                raise errors.NotFound("There is no 'dev.tsv'.", "data_dir")
            case "cola":
                raise ZeroDivisionError("by zero")
            case _:
                os._exit(7)


def config_of(task, number, folder, **values):
    out = str(folder / f"{task}{number}")
    values |= {"task_name": task, "output_dir": out, "do_train": True}
    return RunConfig.from_values(Command.CLASSIFIER, values, values)


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "kind", "words"),
    [
        ("rte", errors.NotFound, "There is no 'dev.tsv'."),
        ("cola", RuntimeError, "ZeroDivisionError: by zero"),
        ("mrpc", errors.WorkerLost, "status 7"),
    ],
)
def test_a_run_that_fails_stops_those_that_have_not_started(task, kind, words, tmp_path):
    configs = [config_of(task, number, tmp_path) for number in range(4)]
    begun, done = [], []
    pool = parallel.LocalPool(1, [config.device for config in configs])
    jobs = iter([Job(Failing(), config) for config in configs])
    with pytest.raises(kind) as raised:
        parallel.run_in_parallel(jobs, pool, begun.append, lambda *row: done.append(row))
    assert words in str(raised.value) and begun == configs[:1] and not done
    if kind is RuntimeError:  # The log of the command has the place in the worker's code.
        assert "parallel_test.py" in str(raised.value.__cause__)


def test_the_end_of_the_command_stops_a_run_and_no_idle_process(monkeypatch, tmp_path):
    sent = []
    monkeypatch.setattr(worker.os, "kill", lambda pid, number: sent.append(number))
    monkeypatch.setattr(worker.os, "dup2", lambda *ends: None)
    line = Job(Failing(), config_of("rte", 0, tmp_path)).to_line().encode()
    for take, signals in ((False, []), (True, [signal.SIGTERM])):
        read_end, write_end = os.pipe()
        inbox = worker.Inbox(os.fdopen(read_end, "rb"))
        jobs = iter(inbox)
        with os.fdopen(write_end, "wb") as commands:
            if take:
                commands.write(line + b"\n")
                commands.flush()
                assert next(jobs).config == config_of("rte", 0, tmp_path)
            commands.write(line[:5])  # The command was killed while it wrote.
        wait(lambda signals=signals: sent == signals)
        assert list(jobs) == []


def test_every_kind_of_error_comes_back_as_it_was():
    def sent(error):
        return Outcome.from_line(Outcome(error=error).to_line()).error

    for kind in [errors.InputError, *errors.InputError.__subclasses__()]:
        error = sent(kind("top_k=0 is wrong", "top_k=0"))
        assert (type(error), str(error)) == (kind, "top_k=0 is wrong")
        assert (error.code, error.arguments) == (kind.code, ("top_k=0",))
    memory = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")
    assert type(sent(memory)) is tf.errors.ResourceExhaustedError
    assert sent(memory).message == memory.message
    assert str(sent(PermissionError(13, "Permission denied", "a"))) == (
        "[Errno 13] Permission denied: 'a'"
    )
    assert type(sent(FileNotFoundError(2, "No such file", "a"))) is FileNotFoundError


def test_a_row_has_plain_numbers():
    row = {"results": {"eval_accuracy": np.float32(0.5), "eval_loss": float("nan")}}
    (received,) = Outcome.from_line(Outcome(row=row).to_line()).row.values()
    assert received["eval_accuracy"] == 0.5 and np.isnan(received["eval_loss"])


@pytest.mark.parametrize(
    ("visible", "distribution", "used"),
    [
        ([], "auto", [[], [], []]),
        ([1], "one_device", [[1], [1], [1]]),
        ([1, 2], "auto", [[1, 2], [1, 2], [1, 2]]),
        ([1, 2], "one_device", [[1], [2], [1]]),
    ],
)
def test_processes_use_the_visible_gpus(visible, distribution, used, monkeypatch, tmp_path):
    """Runs on one device use them in turn."""
    found = {"list_physical_devices": "abc", "get_visible_devices": ["abc"[i] for i in visible]}
    for name, gpus in found.items():
        monkeypatch.setattr(tf.config, name, lambda kind, gpus=gpus: list(gpus))
    device = config_of("mrpc", 0, tmp_path, distribution=distribution).device
    assert [setup.gpus for setup in parallel.setups(3, [device])] == used


def test_a_tpu_is_not_shared(tmp_path):
    device = config_of("mrpc", 0, tmp_path, use_tpu=True).device
    with raises_code("conflict", "--parallel_trials=2", "TPU"):
        parallel.check_devices(2, [device])
    parallel.check_devices(1, [device])
