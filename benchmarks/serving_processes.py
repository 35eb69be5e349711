"""The processes of `benchmarks.serving`: a model server on the loopback interface, and clients.

Each ends by itself: after a time limit, and with the process that started it.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import resource
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from benchmarks import runner, serving_clients
from benchmarks.serving_clients import Asked

SERVER = runner.ROOT / "examples" / "serving" / "server.py"
LIMIT_SECONDS = 3 * 3600
READY_SECONDS, EVERY = 120.0, 0.05


class Server:
    """A running server.

    Args:
      process: that runs it.
      port: of its REST interface.
      base: the folder of its versions.
    """

    def __init__(self, process: subprocess.Popen[str], port: int, base: pathlib.Path) -> None:
        self.process, self.port, self.base = process, port, base

    def wait_for(self, version: int) -> None:
        """Waits until a version answers."""
        for _ in range(int(READY_SECONDS / EVERY)):
            with contextlib.suppress(OSError):
                url = f"http://127.0.0.1:{self.port}/v1/models/bert"
                with urllib.request.urlopen(url, timeout=10) as answer:
                    if f'"{version}"' in answer.read().decode():
                        return
            time.sleep(EVERY)
        raise SystemExit(f"Version {version} does not answer after {READY_SECONDS:.0f} s.")

    def resident_mb(self) -> float:
        """Returns the resident memory of its process."""
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize() / 2**20


@contextlib.contextmanager
def served(versions: pathlib.Path, batching: str) -> Iterator[Server]:
    """Starts a server of version 1, and ends it; `batching` is a text of `BatchingParameters`.

    The versions that it serves are moved from the folder `versions`, and back at the end.
    """
    with tempfile.TemporaryDirectory(dir=versions.parent) as temporary:
        base, port = pathlib.Path(temporary, "bert"), _free_port()
        base.mkdir()
        (versions / "1").rename(base / "1")
        flags = ["--model_name=bert", f"--model_base_path={base}", f"--rest_api_port={port}"]
        if batching:
            file = pathlib.Path(temporary, "batching_parameters.txt")
            file.write_text(batching)
            flags += ["--enable_batching", f"--batching_parameters_file={file}"]
        with _start("server", *flags) as process:
            server = Server(process, port, base)
            try:
                server.wait_for(1)
                yield server
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(60)
                for path in base.iterdir():
                    path.rename(versions / path.name)


def start_clients(
    server: Server, asked: Asked, clients: int, seconds: float = 0, most: int = 0
) -> subprocess.Popen[str]:
    """Starts clients for some seconds, or as many requests as `most`."""
    arguments = json.dumps([server.port, dataclasses.asdict(asked), clients, seconds, most])
    return _start("clients", arguments)


def read_lines(clients: subprocess.Popen[str]) -> Iterator[Any]:
    """Yields what clients print, until they end; the last line has the samples."""
    yield from map(json.loads, clients.stdout or ())
    if clients.wait():
        raise SystemExit(f"The clients ended with {clients.returncode}.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.serving_processes", *arguments]
    return subprocess.Popen(command, cwd=runner.ROOT, stdout=subprocess.PIPE, text=True)


def main(what: str, *arguments: str) -> None:
    """Runs the server, or clients."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    if what == "server":
        sys.argv = [str(SERVER), *arguments]
        runpy.run_path(str(SERVER), run_name="__main__")
        return
    port, asked, clients, seconds, most = json.loads(*arguments)
    url = f"http://127.0.0.1:{port}/v1/models/bert:predict"
    samples = serving_clients.run(url, Asked(**asked).bodies(), clients, seconds, most)
    print(json.dumps({"requests": len(samples), "samples": samples}))


def _end_with(parent: int) -> None:
    """Ends this process with its parent, and after the limit."""
    end = time.monotonic() + LIMIT_SECONDS
    while os.getppid() == parent and time.monotonic() < end:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
