"""Exit codes and messages: whatever ends a job, the user reads one message."""

import signal
import sys
import types

import pytest
from absl import flags
from absl.testing import flagsaver

import run_classifier
from adapter_bert_tf.command.main import run_job
from adapter_bert_tf.errors import Diverged, InputError, Interrupted, WorkerLost


@pytest.fixture
def ending(monkeypatch):
    """A function that runs a job which raises an error, and returns the exit code."""
    assert run_classifier  # Its import defines the flags.
    before = signal.getsignal(signal.SIGTERM)

    def end(error):
        def run(values):
            raise error

        monkeypatch.setitem(sys.modules, "a_job", types.SimpleNamespace(run=run))
        with flagsaver.flagsaver():
            flags.FLAGS(["run_classifier.py"])
            with pytest.raises(SystemExit) as stop:
                run_job("a_job")
        return stop.value.code

    yield end
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("kind", [InputError, Diverged, WorkerLost])
def test_what_the_user_can_mend_is_one_message(kind, ending):
    assert ending(kind("Mend it.")) == "error: Mend it."  # Python prints it, and exits with 1.


def test_an_interrupted_job_says_how_to_go_on(ending, capsys):
    assert ending(Interrupted("Saved at step 8.", signal.SIGTERM)) == 143
    assert capsys.readouterr().err == "\nSaved at step 8.\n"


def test_a_key_stroke_is_no_traceback(ending, capsys):
    assert ending(KeyboardInterrupt()) == 130
    assert "The same command goes on from the last checkpoint" in capsys.readouterr().err


def test_sigterm_lets_go_of_what_is_held(ending):
    ending(InputError("Mend it."))
    with pytest.raises(SystemExit) as stop:
        signal.raise_signal(signal.SIGTERM)
    assert stop.value.code == 143
