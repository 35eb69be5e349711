"""Locks: one process at a time writes a folder."""

import contextlib
import errno
import json
import os
import pathlib
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import filelock

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError, Occupied
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.permissions import denied_as_input_error
from adapter_bert_tf.sanitize import printable, truncate

FILE = ".lock"
BEAT = 15.0  # Seconds between heartbeats.
STALE = 120.0  # Seconds without a heartbeat after which an owner on another machine is dead.
AHEAD = 86400.0  # Seconds by which another machine's clock may be ahead.
WIDTH = 1024  # Bytes of the file: a heartbeat overwrites it in place.
PATIENCE = 0.25  # Seconds in which an owner that stops may release the kernel's lock.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # The file system has no locks.
TEXTS, TIMES = ("host", "machine", "process", "id"), ("since", "beat")
FIELDS = {**dict.fromkeys(TEXTS, str), "pid": int, **dict.fromkeys(TIMES, float)}

_held: set[str] = set()


class InUse(InputError, code="in_use"):
    """Another process holds a folder."""


@contextlib.contextmanager
def locked(folder: str, wait: bool = False) -> Iterator[None]:
    """Holds the folder's lock, which is reentrant in a process.

    Raises `InUse` if another process holds it, unless `wait`, and `InputError` if this user may not
    write there.
    """
    path = os.path.join(folder, FILE)
    if path in _held:
        yield
        return
    lock = Lock(path)
    with denied_as_input_error():
        (lock.wait if wait else lock.acquire)()
    _held.add(path)
    try:
        yield
    finally:
        _held.discard(path)
        lock.release()


def remove_dead(folder: str) -> None:
    """Removes the lock file of a killed process."""
    path = os.path.join(folder, FILE)
    if path not in _held and storage.exists(path) and not _is_alive(_read(path)):
        storage.remove(path)


class Lock:
    """A file that names its owner, in the folder that is locked.

    A local file is also locked by the operating system, which releases the lock of a killed
    process. Object stores have no such locks, and some network file systems have them only between
    the processes of one machine. So the owner also writes a heartbeat every `BEAT` seconds.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.kernel: filelock.BaseFileLock | None = None
        self.owner = _this_process()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)

    def acquire(self) -> None:
        """Takes the lock. Raises `InUse` if another process has it."""
        owner, existed = _read(self.path), storage.exists(self.path)
        if _is_alive(owner) and not _falls_silent(self.path, owner):
            raise InUse(_in_use(self.path, owner))
        if not storage.is_remote(self.path):
            self._acquire_kernel_lock()
        if existed:
            print(f"Taking over from {_name(owner)}.", flush=True)
        self._write()
        if self.kernel is None:
            time.sleep(1.0)  # If two processes write at once, the later one owns the lock.
        if not self._is_mine(current := _read(self.path)):
            raise InUse(_in_use(self.path, current))
        self.thread.start()

    def _acquire_kernel_lock(self) -> None:
        """Takes the lock of the operating system. Raises `InUse` if another process has it."""
        storage.makedirs(os.path.dirname(self.path))
        if storage.is_link(self.path):
            raise Occupied(f"{self.path} is a link, and a file is written there. Remove it.")
        # Not `filelock`'s fallback, which cannot detect a dead process on another machine.
        lock = filelock.FileLock(self.path, thread_local=False, fallback_to_soft=False)
        try:
            lock.acquire(timeout=PATIENCE, poll_interval=0.05)
            self.kernel = lock
        except filelock.Timeout:
            raise InUse(_in_use(self.path, _read(self.path))) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise

    def wait(self) -> None:
        """Takes the lock as soon as no other process has it."""
        waited = False
        while True:
            try:
                self.acquire()
                return
            except InUse as error:
                if not waited:
                    print(f"Waiting. {error}", flush=True)
                waited = True
                time.sleep(1.0)

    def release(self) -> None:
        """Removes the file, then releases the kernel's lock: a waiting process finds no file."""
        self.done.set()
        self.thread.join()
        if self._is_mine(_read(self.path)):
            storage.remove(self.path)
        if self.kernel:
            self.kernel.release()

    def beat(self) -> None:
        """Writes heartbeats until `done`; ends the process if another one has the lock."""
        while not self.done.wait(BEAT):
            try:
                # Another process may have taken the lock while this machine slept.
                if (current := _read(self.path)) and not self._is_mine(current):
                    print(f"{self.path} belongs to another process now; stopping.", flush=True)
                    os._exit(1)
                self._write()
            except (OSError, InputError) as error:
                print(f"{self.path} could not be renewed; trying again: {error}", flush=True)

    def _write(self) -> None:
        text = json.dumps(self.owner | {"beat": time.time()})
        if self.kernel is None:
            storage.write_text(self.path, text)
            return
        # In place: a new file of this name would not be locked.
        with open(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o666), "wb", buffering=0) as file:
            file.write(text.ljust(WIDTH).encode())

    def _is_mine(self, owner: dict[str, Any]) -> bool:
        return owner.get("id") == self.owner["id"]


def _this_process() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "machine": _machine(),
        "pid": os.getpid(),
        "process": _start_of(os.getpid()),
        "since": time.time(),
        "id": uuid.uuid4().hex,
    }


def _read(path: str) -> dict[str, Any]:
    owner = read_record(path)
    if owner is None or not all(isinstance(owner.get(n), kind) for n, kind in FIELDS.items()):
        return {}
    # With a time far ahead, or NaN, the lock would never expire.
    return owner if owner["since"] >= 0 and owner["beat"] < time.time() + AHEAD else {}


def _is_alive(owner: dict[str, Any]) -> bool:
    if not owner:
        return False
    if owner["machine"] == _machine():
        return _start_of(owner["pid"]) == owner["process"]
    return time.time() - owner["beat"] < STALE


def _falls_silent(path: str, owner: dict[str, Any]) -> bool:
    """Waits for a heartbeat of this machine's earlier boot, and returns whether there is none."""
    if owner["host"] != socket.gethostname() or owner["machine"] == _machine():
        return False
    print(
        f"{path} belongs to process {owner['pid']} on a machine of this name, perhaps before it "
        f"was restarted. Waiting for a heartbeat, up to {STALE:.0f} s.",
        flush=True,
    )
    while _is_alive(owner):
        time.sleep(1.0)
        if _read(path) != owner:
            return False
    return True


def _machine() -> str:
    """Identifies this machine since its boot, and this container."""
    try:
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _start_of(pid: int) -> str:
    """Returns the start time of a process, to detect a reused pid; "" if it is not running."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        fields = stat[stat.rindex(")") + 2 :].split()
        return "" if fields[0] == "Z" else fields[19]  # In clock ticks after boot.
    except OSError:
        return ""


def _name(owner: dict[str, Any]) -> str:
    """Describes a dead owner, from a file that anybody may have written."""
    if not owner:
        return f"a damaged {FILE}"
    return f"process {owner['pid']} on {truncate(printable(owner['host']), 100)}, which is gone"


def _in_use(path: str, owner: dict[str, Any]) -> str:
    if not owner:
        return f"{path} is changing its owner at this moment. Start again in a minute."
    age, silent = (time.time() - owner[key] for key in ("since", "beat"))
    return (
        f"{os.path.dirname(path)} is in use by process {owner['pid']} on "
        f"{truncate(printable(owner['host']), 100)}, for {age:.0f} s (last heartbeat "
        f"{silent:.0f} s ago). Wait for it, or choose another --output_dir. If that machine "
        f"is dead, the lock expires {STALE:.0f} s after its last heartbeat; you may also remove "
        f"{path}."
    )
