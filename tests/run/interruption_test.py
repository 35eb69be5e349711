"""Runs that are killed or asked to stop, and go on to the same adapter, bit for bit."""

import json
import random
import re
import resource
import signal
import time

import pytest

from tests import processes
from tests.runners.multitask_test import write_cola
from tests.runs import base_flags, write_mrpc

pytestmark = pytest.mark.long
STEPS = 200
FLAGS = [
    "--task_name=mrpc",
    "--do_train",
    "--do_eval",
    "--max_seq_length=16",
    "--train_batch_size=8",
    "--num_train_epochs=25",
    "--learning_rate=1e-2",
    "--save_checkpoints_steps=5",
]


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


class Run:
    """The command in a process of its own."""

    def __init__(self, mrpc, base, out, *more):
        data = (f"--data_dir={mrpc}", *base_flags(base), f"--output_dir={out}")
        self.process = processes.Process(["run_classifier.py", *FLAGS, *data, *more])

    @property
    def text(self):
        return self.process.text

    def wait_for(self, condition, seconds=200):
        """Waits until a condition holds or the run is over."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and not condition():
            assert time.monotonic() < end, self.text
            time.sleep(0.005)

    def end(self, number=None):
        """Sends a signal; the exit status, once it is over."""
        if number:
            self.process.send_signal(number)
        return self.process.wait(timeout=300)


@pytest.fixture(scope="module")
def uninterrupted(mrpc, tiny_base_folder, tmp_path_factory):
    """The output folder of a run that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run = Run(mrpc, tiny_base_folder, out)
    assert run.end() == 0, run.text
    return out


def state(out):
    """What TensorFlow says of the checkpoints; None before the first."""
    path = out / "checkpoints" / "checkpoint"
    return path.read_text() if path.exists() else None


def assert_same(out, other):
    """Two finished folders hold the same result, and nothing half-written."""
    for name in ("adapter/adapter.safetensors", "eval_results.txt"):
        assert (out / name).read_bytes() == (other / name).read_bytes(), name
    steps = [json.loads(line)["step"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(set(steps)) and steps[-1] == STEPS
    assert not [path for path in out.rglob("*") if re.search(r"\.tmp|\.lock|tempstate", path.name)]


@pytest.mark.slow  # tests/kill does it at each change of a file, in `make test-long` at some.
@pytest.mark.parametrize("kills", [3, 20])
def test_kill_at_random_moments(kills, mrpc, tiny_base_folder, tmp_path, uninterrupted):
    """Most fall between a checkpoint and the steps after it, some in the midst of starting."""
    moments, out, killed = random.Random(kills), tmp_path / "out", 0
    for _ in range(kills):
        before = state(out)
        run = Run(mrpc, tiny_base_folder, out)
        if moments.random() < 0.8:
            run.wait_for(lambda before=before: state(out) != before)
        time.sleep(moments.uniform(0, 0.3))
        status = run.end(signal.SIGKILL)
        killed += status == -signal.SIGKILL
        assert status in (0, -signal.SIGKILL), run.text
    run = Run(mrpc, tiny_base_folder, out)
    assert run.end() == 0, run.text
    print(f"killed {killed} times, the last time after {state(out)}")
    assert killed >= kills * 0.7
    assert_same(out, uninterrupted)


def test_sigterm_loses_no_step(mrpc, tiny_base_folder, tmp_path, uninterrupted):
    run = Run(mrpc, tiny_base_folder, tmp_path / "out")
    run.wait_for(lambda: state(tmp_path / "out"))
    assert run.end(signal.SIGTERM) == 128 + signal.SIGTERM, run.text
    stopped = re.search(r"Stopped at step (\d+), which is saved", run.text)
    assert stopped and 0 < int(stopped[1]) < STEPS
    again = Run(mrpc, tiny_base_folder, tmp_path / "out")
    assert again.end() == 0, again.text
    assert re.search(r"Resuming from step (\d+)", again.text)[1] == stopped[1]
    assert_same(tmp_path / "out", uninterrupted)


def test_a_full_disk_is_one_message_and_loses_nothing(
    mrpc, tiny_base_folder, tmp_path, uninterrupted
):
    """A limit of a file's size, as a quota has it: the next checkpoint cannot be written."""
    run = Run(mrpc, tiny_base_folder, tmp_path / "out")
    run.wait_for(lambda: state(tmp_path / "out"))
    resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (8192, 8192))
    assert run.end() == 1, run.text
    assert "Traceback" not in run.text and run.text.count("error: ") == 1
    assert re.search(r"^error: .*(File too large|no room left)", run.text, re.M), run.text
    again = Run(mrpc, tiny_base_folder, tmp_path / "out")
    assert again.end() == 0, again.text
    assert int(re.search(r"Resuming from step (\d+)", again.text)[1]) > 0
    assert_same(tmp_path / "out", uninterrupted)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["hyperformer++", "per_task_adapters", "pals"])
def test_several_tasks_go_on_as_one(method, mrpc, tiny_base_folder, tmp_path):
    """Stopped and killed, a run of mixed batches ends with the same adapters of all tasks."""
    if not (mrpc.parent / "CoLA").exists():
        write_cola(mrpc.parent / "CoLA")
    more = ["--task_name=cola,mrpc", f"--tuning={method}", f"--data_dir={mrpc.parent}"]
    whole, out = tmp_path / "whole", tmp_path / "out"
    run = Run(mrpc, tiny_base_folder, whole, *more)
    assert run.end() == 0, run.text
    for number, status in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -9)):
        before = state(out)
        run = Run(mrpc, tiny_base_folder, out, *more)
        run.wait_for(lambda before=before: state(out) != before)
        assert run.end(number) == status, run.text
    run = Run(mrpc, tiny_base_folder, out, *more)
    assert run.end() == 0 and "Resuming from step" in run.text, run.text
    assert "AutoGraph" not in run.text
    files = sorted(path.relative_to(whole) for path in whole.rglob("*.safetensors"))
    assert len(files) == (1 if method == "pals" else 3)
    for path in (*files, "eval_results.txt"):
        assert (out / path).read_bytes() == (whole / path).read_bytes(), path


def test_a_finished_run_is_not_repeated(mrpc, tiny_base_folder, uninterrupted):
    out = uninterrupted
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    run = Run(mrpc, tiny_base_folder, out)
    assert run.end() == 0 and "holds the results of this very run" in run.text
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}


def test_a_second_process_is_refused(mrpc, tiny_base_folder, tmp_path):
    longer = "--num_train_epochs=100000"
    run = Run(mrpc, tiny_base_folder, tmp_path / "out", longer)
    run.wait_for((tmp_path / "out" / ".lock").exists)
    second = Run(mrpc, tiny_base_folder, tmp_path / "out", longer)
    status = second.end()
    run.end(signal.SIGKILL)
    assert status == 1, second.text
    assert re.search(rf"in use by process {run.process.pid} on .*, for \d+ s", second.text)
