"""Worker processes: killed, of another runner, and with all paths in gs://."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.beam.job_test import contents, pairs, write_csv
from tests.fake_gcs import FakeGcs, Faults
from tests.predict.predictor_test import BASE, PAIRS

pytestmark = pytest.mark.long
COMMAND = [sys.executable, "-m", "adapter_bert_tf", "score", "--part_rows=10", "--batch_size=4"]
COLUMNS = ["--text_a_column=sentence1", "--text_b_column=sentence2"]
SECONDS = 240


def flags(inputs, output, adapter=PAIRS, base=BASE):
    paths = [f"--adapter_dir={adapter}", f"--base_model={base}"]
    return [*paths, f"--input={inputs}", f"--output={output}", *COLUMNS, "--threads=1"]


def run(*words, **environment):
    """Runs the command; returns what it printed."""
    done = subprocess.run(
        [*COMMAND, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def workers_of(pid):
    """The processes that a process has started."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = path.read_text()
            if int(text.rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


@pytest.fixture
def asked(tmp_path):
    for number in range(4):
        write_csv(tmp_path / "in" / f"{number}.csv", pairs(150, seed=number))
    return tmp_path / "in"


def test_a_worker_that_is_killed(asked, tmp_path):
    """The run goes on with other workers; nothing is lost, nothing twice, and no process stays."""
    run(*flags(asked, tmp_path / "undisturbed"))
    out = tmp_path / "out"
    process = subprocess.Popen(
        [*COMMAND, *flags(asked, out), "--workers=2"], stdout=subprocess.PIPE, text=True
    )
    end = time.monotonic() + SECONDS
    while len(list(out.glob("*.csv"))) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    workers = workers_of(process.pid)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    printed, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0 and "worker process died" in printed
    assert contents(out) == contents(tmp_path / "undisturbed")
    assert not [pid for pid in workers if pathlib.Path(f"/proc/{pid}").exists()]


def test_a_command_that_is_killed_goes_on(asked, tmp_path):
    run(*flags(asked, tmp_path / "undisturbed"))
    out = tmp_path / "out"
    process = subprocess.Popen([*COMMAND, *flags(asked, out), "--workers=2"])
    end = time.monotonic() + SECONDS
    while len(list(out.glob("*.csv"))) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    workers = workers_of(process.pid)
    process.kill()
    process.wait()
    while time.monotonic() < end and any(pathlib.Path(f"/proc/{pid}").exists() for pid in workers):
        time.sleep(0.1)
    assert workers and not [pid for pid in workers if pathlib.Path(f"/proc/{pid}").exists()]
    run(*flags(asked, out), "--resume")
    assert contents(out) == contents(tmp_path / "undisturbed")


def test_the_portable_runner_writes_the_same(asked, tmp_path):
    """The graph that Flink and Spark are sent, too, for workers behind a socket."""
    run(*flags(asked, tmp_path / "local"))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    words = ["apache_beam.runners.portability.local_job_service_main", f"-p{port}"]
    service = subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.DEVNULL)
    try:
        endpoint = [f"--job_endpoint=localhost:{port}", "--environment_type=LOOPBACK"]
        run(*flags(asked, tmp_path / "out"), "--runner=PortableRunner", *endpoint)
    finally:
        service.kill()
        service.wait()
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


def test_all_paths_in_a_bucket(asked, tmp_path):
    """Files are read in parts and written as objects, though every tenth request fails."""
    run(*flags(asked, tmp_path / "local"))
    objects = {f"data/in/{path.name}": path.read_bytes() for path in asked.iterdir()}
    for name, folder in (("adapter", PAIRS), ("base", BASE)):
        files = (path for path in pathlib.Path(folder).iterdir() if path.is_file())
        objects |= {f"data/{name}/{path.name}": path.read_bytes() for path in files}
    with FakeGcs(objects, buckets=["out"], faults=Faults(share=0.1)) as fake:
        environment = fake.environment | {"ADAPTER_BERT_RETRY_SECONDS": "0.01"}
        environment["ADAPTER_BERT_CACHE"] = str(tmp_path / "cache")
        places = flags(
            "gs://data/in/*.csv", "gs://out/scored", "gs://data/adapter", "gs://data/base"
        )
        run(*places, **environment)
    written = tmp_path / "written"
    for name, content in fake.objects.items():
        if name.startswith("out/scored/"):
            path = written / name.removeprefix("out/scored/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    found, expected = contents(written), contents(tmp_path / "local")
    for record in ("score.json",):  # It names the places of the files.
        found.pop(record), expected.pop(record)
    assert found == expected
