"""Commands in processes of their own that need not import TensorFlow again.

A server imports what commands import, and runs no operation of TensorFlow. For each command it
forks: the new process has its own arguments, environment, folder, signals and exit status. Tests of
imports, and those that use gs://, whose environment TensorFlow reads when it is imported, use
`subprocess`.

    python -m tests.processes SOCKET
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pathlib
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parent.parent
PRELOADED = (
    "adapter_bert_tf.cli.analyze",
    "adapter_bert_tf.cli.predict",
    "adapter_bert_tf.cli.store",
    "adapter_bert_tf.jobs.classification",
    "adapter_bert_tf.jobs.questions",
)


class Process:
    """A command that runs.

    Args:
      words: of the command line, after the name of the interpreter.
      cwd: its folder.
      env: its environment; this process's if None.
    """

    def __init__(self, words, cwd=ROOT, env=None):
        self.words = list(map(str, words))
        request = {
            "words": self.words,
            "cwd": str(cwd),
            "env": dict(os.environ if env is None else env),
        }
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(_server())
        pipes = [os.pipe() for _ in ("stdout", "stderr")]
        ends = [end for _, end in pipes]
        socket.send_fds(self._socket, [json.dumps(request).encode() + b"\n"], ends)
        for end in ends:
            os.close(end)
        self._outputs = [Output(end) for end, _ in pipes]
        self.pid = self._number()
        self.returncode = None

    def _number(self):
        return struct.unpack("q", self._socket.recv(8, socket.MSG_WAITALL))[0]

    def wait(self, timeout=None):
        """Its exit status, once it has ended; minus the number of a signal that killed it."""
        if self.returncode is None:
            if not select.select([self._socket], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.words, timeout)
            self.returncode = self._number()
            self._socket.close()
        return self.returncode

    def poll(self):
        """Its exit status, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number):
        """Sends it a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self):
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)

    def output(self):
        """(standard output, standard error): all if it has ended, else so far."""
        for output in self._outputs:
            output.thread.join(None if self.returncode is not None else 0)
        return tuple(output.text for output in self._outputs)

    @property
    def text(self):
        """Both outputs, one after the other."""
        return "".join(self.output())


class Output:
    """Reads what a process writes.

    Args:
      descriptor: the end of a pipe.
    """

    def __init__(self, descriptor):
        self.text, self._descriptor = "", descriptor
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        with open(self._descriptor, encoding="utf-8") as lines:
            for line in lines:
                self.text += line


def run(words, cwd=ROOT, env=None):
    """Runs a command to its end, as `subprocess.run` does.

    Args:
      words: of the command line; the first is the interpreter.
      cwd: its folder.
      env: its environment; this process's if None.
    """
    process = Process(words[1:], cwd, env)
    status = process.wait()
    return subprocess.CompletedProcess(words, status, *process.output())


@functools.cache
def _server():
    """The address of this process's server."""
    folder = tempfile.mkdtemp(prefix="processes-")
    address = f"{folder}/socket"
    words = [sys.executable, "-m", "tests.processes", address]
    server = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE)
    atexit.register(_stop, server, folder)
    while not os.path.exists(address):
        assert server.poll() is None, "the server of processes has ended"
        time.sleep(0.05)
    return address


def _stop(server, folder):
    server.stdin.close()
    server.kill()
    server.wait()
    with contextlib.suppress(FileNotFoundError):
        os.remove(f"{folder}/socket")
    os.rmdir(folder)


def serve(address):
    """Waits for commands; returns the request for one in a process of its own."""
    for name in PRELOADED:
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "huggingface_hub"]:
        del sys.modules[name]  # It reads its environment when it is imported.
    gc.collect()
    gc.freeze()  # Else each process copies the memory that its garbage collector looks at.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.new")
    listening.listen()
    os.rename(f"{address}.new", address)
    while True:
        client, _ = listening.accept()
        if os.fork() == 0:  # Waits for the command, and reports how it ended.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            request, descriptors = _request(client)
            pid = os.fork()
            if pid == 0:
                client.close()
                return request, descriptors
            for descriptor in descriptors:
                os.close(descriptor)
            client.sendall(struct.pack("q", pid))
            _, status = os.waitpid(pid, 0)
            client.sendall(struct.pack("q", os.waitstatus_to_exitcode(status)))
            os._exit(0)
        client.close()


def _request(client):
    """(the request, the descriptors of its output)."""
    text, descriptors, _, _ = socket.recv_fds(client, 1 << 20, 2)
    while not text.endswith(b"\n"):
        text += client.recv(1 << 20)
    return json.loads(text), descriptors


def become(request, descriptors):
    """Makes this process that of a command, and runs it."""
    for number, descriptor in enumerate(descriptors, start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout.reconfigure(line_buffering=True)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    first, *rest = request["words"]
    paths = request["env"].get("PYTHONPATH", "").split(os.pathsep)
    if first in ("-m", "-c"):
        name, *rest = rest
        sys.argv, sys.path[0] = [first, *rest], os.getcwd()
    else:
        sys.argv, sys.path[0] = [first, *rest], os.path.dirname(os.path.abspath(first))
    sys.path[1:1] = [path for path in paths if path and path not in sys.path]
    if first == "-m":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif first == "-c":
        exec(compile(name, "<string>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    become(*serve(sys.argv[1]))
