"""The lock of an output folder: one owner, known by machine, process and sign of life."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run import lock


def write(folder, **changes):
    """Writes a lock of this process, with changes."""
    mark = {
        "host": lock.socket.gethostname(),
        "machine": lock._machine(),
        "pid": os.getpid(),
        "process": lock._started(os.getpid()),
        "since": time.time() - 100,
        "beat": time.time() - 7,
        "id": "other",
    }
    (folder / lock.FILE).write_text(json.dumps(mark | changes))


def dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


ALIVE = {
    "a living process": {},
    "another machine that was heard of": {"host": "elsewhere", "machine": "elsewhere"},
}
DEAD = {
    "a process that is gone": lambda: {"pid": dead_pid()},
    "another process of that number": lambda: {"process": "1"},
    "a silent machine": lambda: {"machine": "elsewhere", "beat": time.time() - 2 * lock.STALE},
}


@pytest.mark.parametrize("changes", ALIVE.values(), ids=ALIVE)
def test_refuses(changes, tmp_path):
    write(tmp_path, **changes)
    with (
        pytest.raises(
            InputError,
            match=r"in use by process \d+ on \S+, for 100 s \(last sign of "
            "life 7 s ago",
        ),
        lock.locked(str(tmp_path)),
    ):
        pass
    assert json.loads((tmp_path / lock.FILE).read_text())["id"] == "other"


@pytest.mark.parametrize("changes", DEAD.values(), ids=DEAD)
def test_takes_over(changes, tmp_path, capsys):
    write(tmp_path, **changes())
    with lock.locked(str(tmp_path)):
        assert json.loads((tmp_path / lock.FILE).read_text())["pid"] == os.getpid()
    assert "Taking over from process" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


RESTARTED = {"machine": "this one, before"}


def test_this_machine_before_a_restart_is_waited_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lock, "STALE", 8.0)  # The last sign of life was 7 seconds ago.
    write(tmp_path, **RESTARTED)
    with lock.locked(str(tmp_path)):
        assert json.loads((tmp_path / lock.FILE).read_text())["pid"] == os.getpid()
    assert re.search("Waiting for a sign of life.*\nTaking over", capsys.readouterr().out)


def test_another_machine_of_this_name_that_lives_keeps_its_lock(tmp_path, monkeypatch):
    write(tmp_path, **RESTARTED)
    monkeypatch.setattr(
        lock.time,
        "sleep",
        lambda seconds: write(tmp_path, id="other", **RESTARTED, beat=time.time()),
    )
    with pytest.raises(InputError, match="in use"), lock.locked(str(tmp_path)):
        pass


@pytest.mark.parametrize("content", ["", "{", "{}", "[1]", "5", "null", '{"host": 1, "pid": "x"}'])
def test_a_damaged_lock_is_taken_over(content, tmp_path):
    (tmp_path / lock.FILE).write_text(content)
    with lock.locked(str(tmp_path)):
        assert json.loads((tmp_path / lock.FILE).read_text())["pid"] == os.getpid()


def test_the_same_process_may_ask_again_and_it_is_freed_after_an_error(tmp_path):
    folder = str(tmp_path / "out")
    with pytest.raises(KeyError), lock.locked(folder), lock.locked(folder):
        raise KeyError
    assert not list((tmp_path / "out").iterdir())


def test_a_failed_write_does_not_end_the_signs_of_life(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lock, "BEAT", 0.05)
    with lock.locked(str(tmp_path)):
        monkeypatch.setattr(lock.storage, "write_text", _full_once(lock.storage.write_text))
        first = json.loads((tmp_path / lock.FILE).read_text())["beat"]
        time.sleep(0.4)
        assert json.loads((tmp_path / lock.FILE).read_text())["beat"] > first
    assert "will be tried again: [Errno 28]" in capsys.readouterr().out


def _full_once(write):
    failures = [OSError(28, "No space left on device")]

    def once(*arguments):
        if failures:
            raise failures.pop()
        write(*arguments)

    return once


def test_it_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.05)
    with lock.locked(str(tmp_path)):
        first = json.loads((tmp_path / lock.FILE).read_text())["beat"]
        time.sleep(0.3)
        assert json.loads((tmp_path / lock.FILE).read_text())["beat"] > first
