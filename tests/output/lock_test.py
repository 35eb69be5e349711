"""The lock of an output folder: one owner, known by machine, process and sign of life."""

import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest

from adapter_bert_tf.output import lock
from tests.refusals import raises_code


class Time:
    """In place of the module `time`: stands still but for those who sleep."""

    def __init__(self):
        self.now = 1e9

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The lock's `Time`."""
    clock = Time()
    monkeypatch.setattr(lock, "time", clock)
    return clock


def write(folder, **changes):
    """Writes a lock of this process, with changes."""
    mark = {
        "host": lock.socket.gethostname(),
        "machine": lock._machine(),
        "pid": os.getpid(),
        "process": lock._start_of(os.getpid()),
        "since": lock.time.time() - 100,
        "beat": lock.time.time() - 7,
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
    "a silent machine": lambda: {"machine": "elsewhere", "beat": lock.time.time() - 2 * lock.STALE},
}


@pytest.mark.parametrize("changes", ALIVE.values(), ids=ALIVE)
def test_refuses(changes, tmp_path):
    write(tmp_path, **changes)
    with (
        raises_code("in_use", "--output_dir"),
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


def test_a_dead_lock_is_removed_and_a_living_one_stays(tmp_path):
    write(tmp_path)
    lock.remove_dead(str(tmp_path))
    assert os.listdir(tmp_path) == [lock.FILE]
    write(tmp_path, pid=dead_pid())
    for _ in range(2):  # The second time there is none.
        lock.remove_dead(str(tmp_path))
        assert not os.listdir(tmp_path)


def test_this_machine_before_a_restart_is_waited_for(tmp_path, clock, capsys):
    write(tmp_path, **RESTARTED)
    began = clock.now
    with lock.locked(str(tmp_path)):
        assert json.loads((tmp_path / lock.FILE).read_text())["pid"] == os.getpid()
    assert clock.now - began == lock.STALE - 7  # It was heard of 7 seconds ago.
    assert re.search("Waiting for a heartbeat.*\nTaking over", capsys.readouterr().out)


def test_another_machine_of_this_name_that_lives_keeps_its_lock(tmp_path, clock, monkeypatch):
    write(tmp_path, **RESTARTED)
    monkeypatch.setattr(
        clock, "sleep", lambda seconds: write(tmp_path, **RESTARTED, beat=clock.now)
    )
    with raises_code("in_use", "--output_dir"), lock.locked(str(tmp_path)):
        pass
    assert json.loads((tmp_path / lock.FILE).read_text())["id"] == "other"


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


class Beats:
    """In place of the event that ends the signs of life: comes after so many of them."""

    def __init__(self, clock, count):
        self.clock, self.left = clock, count

    def wait(self, seconds):
        self.clock.now += seconds
        self.left -= 1
        return self.left < 0


def beat(folder, clock, count):
    """Gives so many signs of life under a lock; the time of the last one that is written."""
    path = folder / lock.FILE
    beating = lock.Lock(str(path))
    write(folder, id=beating.owner["id"])
    beating.done = Beats(clock, count)
    beating.beat()
    return json.loads(path.read_text())["beat"]


def test_it_gives_signs_of_life(tmp_path, clock):
    began = clock.now
    assert beat(tmp_path, clock, 3) == began + 3 * lock.BEAT


def test_a_failed_write_does_not_end_the_signs_of_life(tmp_path, clock, monkeypatch, capsys):
    monkeypatch.setattr(lock.storage, "write_text", _full_once(lock.storage.write_text))
    began = clock.now
    assert beat(tmp_path, clock, 2) == began + 2 * lock.BEAT
    assert "trying again: [Errno 28]" in capsys.readouterr().out


def _full_once(write):
    failures = [OSError(28, "No space left on device")]

    def once(*arguments):
        if failures:
            raise failures.pop()
        write(*arguments)

    return once


def test_who_lost_the_lock_stops(tmp_path, clock, monkeypatch, capsys):
    """As after this machine was asleep."""
    stopped = []
    monkeypatch.setattr(lock.os, "_exit", lambda status: stopped.append(status) or sys.exit())
    write(tmp_path)
    mine = lock.Lock(str(tmp_path / lock.FILE))
    mine.done = Beats(clock, 1)
    with pytest.raises(SystemExit):
        mine.beat()
    assert stopped == [1] and "belongs to another process now" in capsys.readouterr().out


def test_signs_of_life_begin_and_end_with_the_lock(tmp_path, clock, monkeypatch):
    beating = threading.Event()
    monkeypatch.setattr(lock, "BEAT", 0.001)
    write = lock.Lock._write

    def noticed(one):
        write(one)
        beating.set()

    monkeypatch.setattr(lock.Lock, "_write", noticed)
    threads = threading.active_count()
    with lock.locked(str(tmp_path)):
        assert beating.wait(timeout=60)  # However slow the machine is.
    assert threading.active_count() == threads


HOLD = """
import sys, time
from adapter_bert_tf.output.lock import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def hold(folder):
    """Another process that holds the folder."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    lines = iter(other.stdout.readline, "")
    assert any(line == "held\n" for line in lines)
    return other


@pytest.mark.long
def test_two_processes_and_one_that_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "time", time)
    other = hold(tmp_path)
    try:
        for _ in range(2):  # The first refusal leaves the name of the owner.
            with raises_code("in_use", f"process {other.pid} "), lock.locked(tmp_path):
                pass
        (tmp_path / lock.FILE).write_text("{}")  # Whatever the file says, it is locked.
        with raises_code("in_use"), lock.locked(tmp_path):
            pass
    finally:
        other.kill()
        other.wait()
    with lock.locked(tmp_path):
        assert json.loads((tmp_path / lock.FILE).read_text())["pid"] == os.getpid()
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("number", lock.NO_LOCKS)
def test_a_file_system_without_locks_has_signs_of_life(number, tmp_path, monkeypatch):
    def refuse(*arguments, **more):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(lock.filelock.BaseFileLock, "acquire", refuse)
    with lock.locked(str(tmp_path)):
        assert json.loads((tmp_path / lock.FILE).read_text())["pid"] == os.getpid()
    assert not os.listdir(tmp_path)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / lock.FILE).symlink_to(tmp_path / "mine")
    with raises_code("occupied", lock.FILE), lock.locked(tmp_path / "out"):
        pass
    assert (tmp_path / "mine").read_text() == "mine"
