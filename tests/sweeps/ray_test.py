"""`--workers=ray`: checks of machines, the same bytes as one by one, lost workers, stops."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from adapter_bert_tf import errors
from adapter_bert_tf.config.sections.command import SweepsConfig
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sweeps import parallel
from adapter_bert_tf.sweeps.messages import Job
from adapter_bert_tf.sweeps.ray_cluster import cluster
from adapter_bert_tf.sweeps.ray_cluster.cluster import Machine, Resources, check_machines
from adapter_bert_tf.sweeps.ray_cluster.pool import RayPool
from tests.refusals import raises_code
from tests.runs import ROOT, base_flags, command
from tests.sweeps.parallel_test import (
    FLAGS,
    Failing,
    config_of,
    is_running,
    locks,
    mrpc,  # noqa: F401
    one_by_one,  # noqa: F401
    results,
    saved,
    table,
)

HERE = installed_versions()


def machine(cpus, gpus=0):
    return Machine("id", f"10.0.0.{cpus}", cpus, gpus)


@pytest.mark.parametrize(
    ("found", "given", "expected", "room"),
    [
        ([machine(4)], {}, (4, 0), 1),
        ([machine(4), machine(16)], {}, (4, 0), 5),  # A run uses all cores of the smaller one.
        ([machine(8, 2)], {}, (4, 1), 2),
        ([machine(8, 2), machine(12, 4), machine(64)], {}, (3, 1), 6),
        ([machine(2, 4)], {}, (1, 1), 2),
        ([machine(8, 2)], {"gpus_per_trial": 0.5}, (2, 0.5), 4),
        ([machine(8, 2)], {"gpus_per_trial": 2.0}, (8, 2), 1),
        ([machine(8, 2)], {"gpus_per_trial": 0.0, "cpus_per_trial": 2.0}, (2, 0), 4),
        ([machine(2)], {"cpus_per_trial": 0.5}, (0.5, 0), 4),
    ],
)
def test_what_a_run_takes_of_a_cluster(found, given, expected, room):
    resources = cluster.resources_of(SweepsConfig(**given), found)
    assert resources == Resources(*expected)
    assert sum(map(resources.count_on, found)) == room


@pytest.mark.parametrize("given", [{"gpus_per_trial": 1.0}, {"cpus_per_trial": 9.0}])
def test_a_cluster_without_room_for_a_run(given):
    with raises_code("unavailable", "No machine of the Ray cluster", "10.0.0.8: 8, 0"):
        cluster.resources_of(SweepsConfig(**given), [machine(8)])


def fact(host="a", missing=(), versions=HERE, **more):
    return {"host": host, "missing": [*missing], "versions": dict(versions), **more}


OTHER_PYTHON = HERE | {"python": "3.7.1"}
UNEQUAL = {
    "tensorflow": ([fact(), fact("b", versions=HERE | {"tensorflow": "2.19.1"})],
                   "mismatch", "machine b of the Ray cluster has tensorflow 2.19.1; this command"),
    "python": ([fact(versions=OTHER_PYTHON)], "mismatch", "has python 3.7.1"),
    "nothing": ([fact(versions={"tensorflow": "not installed"})],
                "mismatch", "has tensorflow not installed"),
    "a path": ([fact(), fact("b", missing=["/data/RTE"])],
               "not_found", "machine b of the Ray cluster does not have --data_dir=/data/RTE"),
    "precision": ([fact(precision="bfloat16"), fact("b", precision="float16")],
                  "mismatch", "bfloat16 on a, float16 on b"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNEQUAL)
def test_machines_that_differ_are_refused(case):
    facts, code, words = UNEQUAL[case]
    with raises_code(code, words):
        check_machines(facts, {"/data/RTE": "data_dir"})


def test_machines_that_are_equal_decide_the_precision():
    python = HERE["python"].rpartition(".")[0] + ".99"
    same = [fact(precision="float16"), fact("b", versions=HERE | {"python": python})]
    assert check_machines(same, {}) == "float16"
    assert check_machines([fact()], {}) is None


def test_there_is_no_cluster_at_an_address(tmp_path):
    pytest.importorskip("ray")
    with (
        raises_code("unavailable", "--workers=ray://127.0.0.1:9: there is no Ray cluster"),
        cluster.connected("ray://127.0.0.1:9"),
    ):
        pass


# === Real clusters of this machine ===


def start(out, mrpc, base, *more):  # noqa: F811
    """Starts the runs of `FLAGS` on Ray, in a process of its own."""
    words = [sys.executable, "run_classifier.py", "--task_name=mrpc", "--do_train"]
    words += [f"--data_dir={mrpc}", *FLAGS, "--workers=ray", "--cpus_per_trial=1", "--noreport"]
    words += ["--max_seq_length=16", "--train_batch_size=8", *base_flags(base)]
    words += [f"--output_dir={out}", *more]
    text = open(out.parent / f"{out.name}.txt", "w")  # noqa: SIM115
    process = subprocess.Popen(
        words, cwd=ROOT, env=os.environ | {"PYTHONPATH": _path()}, stdout=text, stderr=text
    )
    process.printed = out.parent / f"{out.name}.txt"
    return process


def wait_for(condition, process):
    end = time.monotonic() + 240
    while not condition():
        assert process.poll() is None and time.monotonic() < end, text_of(process)[-3000:]
        time.sleep(0.2)


def _path():
    return os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])


def text_of(process):
    return process.printed.read_text()


def seeds_after_resuming(process):
    """Seeds of the runs that make steps after the first one continues."""
    _, _, after = text_of(process).partition("Resuming from step")
    return set(re.findall(r"\(seed=(\d) pid=\d+\) step ", after))


def rays():
    """Numbers of Ray's processes."""
    found = subprocess.run(["pgrep", "-f", "raylet|gcs_server"], capture_output=True, text=True)
    return set(found.stdout.split())


@pytest.mark.long
def test_ray_writes_the_same_bytes(one_by_one, mrpc, tiny_base_folder, tmp_path):  # noqa: F811
    pytest.importorskip("ray")
    before = rays()
    process = start(tmp_path / "out", mrpc, tiny_base_folder)
    assert process.wait(timeout=300) == 0, text_of(process)[-3000:]
    assert results(tmp_path / "out") == results(one_by_one)
    assert table(tmp_path / "out") == table(one_by_one)
    printed = text_of(process)
    assert "room for 2 at a time, with 1 CPUs and 0 GPUs each" in printed
    for seed in range(3):
        assert re.search(rf"\(seed={seed} pid=\d+\) step 8/8", printed), printed[-3000:]
        assert f"of 3: seed={seed} *" in printed
    assert rays() <= before


@pytest.mark.long
def test_a_lost_run_continues_and_an_interrupted_command_saves_all(
    mrpc,  # noqa: F811
    tiny_base_folder,
    tmp_path,
):
    pytest.importorskip("ray")
    out, before = tmp_path / "out", rays()
    process = start(
        out, mrpc, tiny_base_folder, "--num_train_epochs=3000", "--save_checkpoints_steps=9"
    )
    wait_for(lambda: len(saved(out)) == 2, process)
    owners = [int(re.search('"pid": ([0-9]+)', path.read_text())[1]) for path in locks(out)]
    os.kill(owners[0], signal.SIGKILL)
    wait_for(lambda: seeds_after_resuming(process) == {"0", "1"}, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 128 + signal.SIGTERM
    printed = text_of(process)
    assert len(re.findall(r"Stopped at step (\d+), which is saved", printed)) == 2, printed[-3000:]
    assert "seed=2 *" not in printed and not any(map(is_running, owners)) and not locks(out)
    assert rays() <= before


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "kind", "words"),
    [
        ("rte", errors.NotFound, "There is no 'dev.tsv'."),
        ("mrpc", errors.WorkerLost, "status 7, perhaps because memory is short. Ray started"),
    ],
)
def test_a_run_that_fails_on_ray_stops_those_that_have_not_started(
    task, kind, words, tmp_path, monkeypatch
):
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", _path())
    configs = [config_of(task, number, tmp_path) for number in range(4)]
    begun, done = [], []
    jobs = iter([Job(Failing(), config) for config in configs])
    with pytest.raises(kind) as raised, cluster.connected(None):
        pool = RayPool(Resources(1, 0), 1)
        parallel.run_in_parallel(jobs, pool, begun.append, lambda *row: done.append(row))
    assert words in str(raised.value) and begun == configs[:1] and not done


def test_without_ray_a_line_names_the_extra(monkeypatch, mrpc, tiny_base_folder, tmp_path):  # noqa: F811
    monkeypatch.setitem(sys.modules, "ray", None)
    error = command(
        "--task_name=mrpc", "--do_train", "--do_eval", "--num_trials=2", "--workers=ray",
        f"--data_dir={mrpc}", f"--base_model={tiny_base_folder}", f"--output_dir={tmp_path}/out",
    )  # fmt: skip
    assert 'pip install "adapter_bert_tf[ray]"' in error and not (tmp_path / "out").exists()
