"""Exit codes and messages: whatever ends a job, the user reads one message."""

import errno
import os
import re
import signal
import subprocess
import sys
import tempfile
import types

import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver

import run_classifier
from adapter_bert_tf.cli.error_handling import error_report, run_guarded
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.errors import Diverged, InputError, Interrupted, WorkerLost


@pytest.fixture
def ending(monkeypatch, tmp_path):
    """A function that runs a job which raises an error, and returns the exit code."""
    assert run_classifier  # Its import defines the flags.
    before = signal.getsignal(signal.SIGTERM)

    def end(error):
        def run(values):
            raise error

        monkeypatch.setitem(sys.modules, "a_job", types.SimpleNamespace(run=run))
        with flagsaver.flagsaver():
            given = ["--task_name=demo_factuality", "--do_train", f"--output_dir={tmp_path}"]
            flags.FLAGS(["run_classifier.py", *given])
            with pytest.raises(SystemExit) as stop:
                run_job("a_job")
        return stop.value.code

    yield end
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("kind", [InputError, Diverged, WorkerLost])
def test_what_the_user_can_mend_is_one_message(kind, ending):
    assert ending(kind("Mend it.")) == "error: Mend it."  # Python prints it, and exits with 1.


FULL = OSError(errno.ENOSPC, "No space left on device", "out/x")
UNFORESEEN = {  # Error: what is said of it.
    MemoryError(): "The memory of this machine is not enough",
    FULL: r"There is no room left on the disk. .* \(.*out/x'\)",
    PermissionError(errno.EPERM, "No number of a process"): "No number of a process.",
    tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"): "The memory of this mach",
    tf.errors.ResourceExhaustedError(
        None, None, "out/x.tmp; No space left on device"
    ): "There is no room left on the disk",
    tf.errors.DataLossError(
        None, None, "truncated\nrecord"
    ): "TensorFlow failed: truncated record.",
    KeyError("lost"): r"This should not have happened \(KeyError: 'lost'\)",
    ValueError("bad \ud800 text"): "This should not have happened",
}


@pytest.mark.parametrize("error", UNFORESEEN, ids=lambda error: type(error).__name__)
def test_what_nobody_foresaw_is_one_line_and_a_log(error, ending, tmp_path):
    message = ending(error)
    found = re.fullmatch(rf"error: .*{UNFORESEEN[error]}.* The traceback is in (\S+)", message)
    assert found and "\n" not in message, message
    (log,) = tmp_path.glob("error-*.log")
    assert str(log) == found[1] and type(error).__name__ in log.read_text()


CLOSED = [
    PermissionError(errno.EACCES, "Permission denied", "FOLDER/.lock.c9aa"),
    PermissionError(errno.EACCES, "Permission denied", b"FOLDER/deep/x"),
    tf.errors.PermissionDeniedError(None, None, "FOLDER/x.csv.8bc4.tmp; Permission denied"),
    tf.errors.PermissionDeniedError(None, None, "{{node a}} FOLDER/x; Permission denied"),
]


@pytest.mark.parametrize("error", CLOSED, ids=str)
def test_what_is_closed_to_the_user_is_one_line_without_a_log(error, ending, monkeypatch, tmp_path):
    """What is named is the user's own: where nothing is, the folder above."""
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FOLDER").mkdir()
    said = "the folder 'FOLDER' may not be written by this user. Change that by chmod, or name"
    assert ending(error) == f"error: Permission denied: {said} another."
    assert [path.name for path in tmp_path.iterdir()] == ["FOLDER"]


def test_where_no_log_can_be_written_the_traceback_is_shown(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    said = error_report(KeyError("lost"), None)
    assert "The traceback is this:" in said and "KeyError: 'lost'" in said


STACK = (
    "Graph execution error:\n\nDetected at node Call defined at (most recent call last):\n"
    + '  File "/site-packages/tf_keras/src/engine/training.py", line 1804, in fit\n\n' * 5
)
CALL = "\t [[{{node PartitionedCall}}]] [Op:__inference_train_function_418]"
# What TensorFlow says, the cause in it, and whether it is about the GPU: from reports of users.
GRAPH_ERRORS = [
    ("Input is not invertible.", "Input is not invertible. The traceback", False),
    (
        "{{function_node __wrapped__Mul_device_/device:GPU:0}} 'cuLaunchKernel(f, x)' "
        "failed with 'CUDA_ERROR_INVALID_HANDLE'",
        "TensorFlow failed: 'cuLaunchKernel(f, x)' failed with 'CUDA_ERROR_INVALID_HANDLE'",
        True,
    ),
    ("No PTX compilation provider is available. Neither ptxas", "No PTX compilation", True),
    ("libdevice not found at ./libdevice.10.bc", "libdevice not found", True),
    ("DNN library initialization failed. Look at the errors above", "DNN library", True),
    (
        "Attempting to perform BLAS operation using StreamExecutor without BLAS support",
        "BLAS",
        True,
    ),
    (
        "2 root error(s) found.\n  (0) INTERNAL: NCCL operation ncclGroupEnd() failed",
        "TensorFlow failed: (0) INTERNAL: NCCL operation",
        True,
    ),
]


@pytest.mark.parametrize("said,cause,is_gpu", GRAPH_ERRORS)
def test_an_error_in_a_graph_says_its_cause(said, cause, is_gpu, tmp_path):
    error = tf.errors.InternalError(None, None, f"{STACK}{said}\n{CALL}")
    message = error_report(error, str(tmp_path))
    assert cause in message
    assert ("adapter-bert doctor" in message) == is_gpu
    assert "training.py" not in message and "[Op:" not in message
    (log,) = tmp_path.iterdir()
    assert "training.py" in log.read_text()


def test_a_full_disk_within_a_graph_is_not_called_memory(tmp_path):
    said = f"{STACK}OUT; No space left on device\n{CALL}"
    message = error_report(tf.errors.ResourceExhaustedError(None, None, said), str(tmp_path))
    assert message.startswith("There is no room left on the disk")


NO_UTF8 = os.fsdecode(b"/tmp/\xff")


def test_names_that_tensorflow_cannot_look_for_are_refused(ending, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run_classifier.py", f"--data_dir={NO_UTF8}"])
    message = r"All arguments must be UTF-8. Received: '--data_dir=/tmp/\udcff'"
    assert message in ending(KeyError("never"))
    assert run_guarded(lambda: 0, ()) == 1 and message in capsys.readouterr().err


def test_so_is_a_folder_to_run_in(ending, monkeypatch):
    monkeypatch.setattr(os, "getcwd", lambda: NO_UTF8)
    assert r"Received: '/tmp/\udcff'" in ending(KeyError("never"))


def test_an_interrupted_job_says_how_to_go_on(ending, capsys):
    assert ending(Interrupted("Saved at step 8.", signal.SIGTERM)) == 143
    assert capsys.readouterr().err == "\nSaved at step 8.\n"


def test_a_key_stroke_is_no_traceback(ending, capsys):
    assert ending(KeyboardInterrupt()) == 130
    assert "The same command continues from the last checkpoint" in capsys.readouterr().err


def test_sigterm_lets_go_of_what_is_held(ending):
    ending(InputError("Mend it."))
    with pytest.raises(SystemExit) as stop:
        signal.raise_signal(signal.SIGTERM)
    assert stop.value.code == 143


@pytest.mark.parametrize("command", ["", "classify ", "analyze ", "store ", "predict ", "doctor "])
def test_whoever_reads_the_help_may_stop(command):
    words = f"{sys.executable} -m adapter_bert_tf {command}--help | true"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False)
    assert not done.stderr
