"""One process at a time writes an `--output_dir`."""

import contextlib
import json
import os
import pathlib
import socket
import threading
import time
import uuid

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output import run_files
from adapter_bert_tf.permissions import denied_as_input_error
from adapter_bert_tf.sanitize import printable, truncate

FILE = ".lock"
BEAT = 15.0  # Seconds between signs of life.
AHEAD = 86400.0  # Seconds by which another machine's clock may be.
STALE = 120.0  # Seconds without one after which the owner counts as dead.

FIELDS = {
    "host": str,
    "machine": str,
    "pid": int,
    "process": str,
    "since": float,
    "beat": float,
    "id": str,
}

_held: set[str] = set()


@contextlib.contextmanager
def locked(folder):
    """Holds the folder's lock; inside the same process it may be asked for again.

    The owner writes a sign of life every `BEAT` seconds. A lock is taken over when its process is
    gone from this machine, or, if it belongs to another machine, is silent for `STALE` seconds;
    if that machine has this one's name, it is waited for.

    Raises:
      InputError: when another process holds it; says which, and since when. Or when this user may
        not write there.
    """
    path = os.path.join(folder, FILE)
    if path in _held:
        yield
        return
    mark = {
        "host": socket.gethostname(),
        "machine": _machine(),
        "pid": os.getpid(),
        "process": _started(os.getpid()),
        "since": time.time(),
        "id": uuid.uuid4().hex,
    }
    with denied_as_input_error():
        _take(path, mark)
    _held.add(path)
    done = threading.Event()
    beating = threading.Thread(target=_beat, args=(path, mark, done), daemon=True)
    beating.start()
    try:
        yield
    finally:
        done.set()
        beating.join()
        _held.discard(path)
        if _read(path).get("id") == mark["id"]:
            storage.remove(path)


def remove_dead(folder):
    """Removes the lock that a process left which is gone; says nothing, as nothing is begun."""
    path = os.path.join(folder, FILE)
    if storage.exists(path) and not _is_alive(owner := _read(path)):
        _break(path, owner)


def _take(path, mark):
    if not _create(path, mark):
        owner = _read(path)
        if _is_alive(owner) and not _falls_silent(path, owner):
            raise InputError(_refusal(path, owner))
        print(
            f"Taking over from process {owner['pid']} on {_host(owner)}, which is gone."
            if owner
            else f"{path} is damaged, and is taken over.",
            flush=True,
        )
        _break(path, owner)
        _create(path, mark)
    if storage.is_remote(path):
        time.sleep(1.0)  # Of two that wrote at once, the later one stays.
    if (owner := _read(path)).get("id") != mark["id"]:
        raise InputError(_refusal(path, owner))


def _host(owner):
    """The machine's name, of a file that anybody may have written."""
    return truncate(printable(owner["host"]), 100)


def _break(path, owner):
    """Removes a dead owner's lock; one that another process took meanwhile stays."""
    if storage.is_remote(path):
        storage.remove(path)
        return
    aside = f"{path}.{uuid.uuid4().hex}"
    with contextlib.suppress(FileNotFoundError, FileExistsError):
        os.rename(path, aside)
        if _read(aside).get("id") != owner.get("id"):
            os.link(aside, path)
        os.remove(aside)


def _create(path, mark):
    """Writes the lock if there is none; whether it did. A store cannot do both in one step."""
    text = json.dumps(mark | {"beat": time.time()})
    if storage.is_remote(path):
        if storage.exists(path):
            return False
        storage.write_text(path, text)
        return True
    storage.makedirs(os.path.dirname(path))
    whole = f"{path}.{mark['id']}"
    pathlib.Path(whole).write_text(text)
    try:
        os.link(whole, path)
        return True
    except (FileExistsError, FileNotFoundError):  # Another process has it, and cleaned up here.
        return False
    finally:
        pathlib.Path(whole).unlink(missing_ok=True)


def _beat(path, mark, done):
    while not done.wait(BEAT):
        try:
            if _read(path).get("id", mark["id"]) != mark["id"]:  # This machine was asleep.
                print(f"{path} belongs to another process now, so this one stops.", flush=True)
                os._exit(1)
            storage.write_text(path, json.dumps(mark | {"beat": time.time()}))
        except (OSError, InputError, tf.errors.OpError) as error:
            print(f"{path} could not be renewed, and will be tried again: {error}", flush=True)


def _read(path):
    """What a lock says; an empty dict if it is not there or not whole."""
    mark = run_files.read_record(path)
    whole = mark is not None and all(
        isinstance(mark.get(name), kind) for name, kind in FIELDS.items()
    )
    # A time far ahead, or NaN, would count as a sign of life for ever.
    return mark if whole and mark["since"] >= 0 and mark["beat"] < time.time() + AHEAD else {}


def _is_alive(owner):
    if not owner:
        return False
    if owner["machine"] == _machine():
        return _started(owner["pid"]) == owner["process"]
    return time.time() - owner["beat"] < STALE


def _falls_silent(path, owner):
    """Waits for an owner that may be this machine before it was restarted; whether it is dead."""
    if owner["host"] != socket.gethostname() or owner["machine"] == _machine():
        return False
    print(
        f"{path} is of process {owner['pid']} on a machine of this name, perhaps before it was "
        f"restarted. Waiting for a sign of life, up to {STALE:.0f} s.",
        flush=True,
    )
    while _is_alive(owner):
        time.sleep(1.0)
        if _read(path) != owner:
            return False
    return True


def _machine():
    """What tells this machine, since it was started, and this container from others."""
    try:
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid):
    """What tells a process from an earlier one of the same number; "" if there is none."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        fields = stat[stat.rindex(")") + 2 :].split()
        return "" if fields[0] == "Z" else fields[19]  # Clock ticks from boot to its start.
    except OSError:
        return ""


def _refusal(path, owner):
    if not owner:
        return f"{path} changes hands at this moment. Start again in a minute."
    age, silent = (time.time() - owner[key] for key in ("since", "beat"))
    return (
        f"{os.path.dirname(path)} is in use by process {owner['pid']} on {_host(owner)}, for "
        f"{age:.0f} s (last sign of life {silent:.0f} s ago). Wait for it, or choose another "
        f"--output_dir. If that machine is dead, its lock counts no more after {STALE:.0f} s "
        f"of silence; {path} may also be removed by hand."
    )
