"""One device, two devices and two processes train and evaluate the same; a lost worker is noticed.

The base has no dropout: its masks are one for each replica, and so differ with their number.
"""

import functools
import json
import os
import re
import signal
import socket
import time

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.base import load_base
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.training.tuning import Tuning
from tests import processes, support
from tests.runners.multitask_test import write_cola
from tests.runs import ROOT, write_mrpc

pytestmark = pytest.mark.long
CONFIG = support.CONFIG | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
FLAGS = [
    "--task_name=mrpc",
    "--max_seq_length=16",
    "--train_batch_size=16",
    "--do_train",
    "--do_eval",
    "--do_predict",
    "--learning_rate=1e-2",
]
EPOCHS = "--num_train_epochs=5"  # 20 steps.


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "google"
    support.write_google(folder, config=CONFIG)
    return folder


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    """The task with a number of rows that no batch size divides."""
    folder = write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")
    dev = folder / "dev.tsv"
    dev.write_text("".join(dev.read_text().splitlines(keepends=True)[:-3]))
    return folder


def start(out, mrpc, base, *more, devices=1, tf_config=None):
    """Starts the command in a process of its own."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": str(ROOT)}
    if tf_config:
        environment["TF_CONFIG"] = json.dumps(tf_config)
    data = (f"--data_dir={mrpc}", f"--base_model={base}", f"--output_dir={out}")
    words = ["tests/launch.py", devices, "run_classifier.py", *FLAGS, EPOCHS, *data, *more]
    return processes.Process(words, env=environment)


def workers(out, mrpc, base, *more):
    """Starts two workers on loopback."""
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    places = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return [
        start(
            out,
            mrpc,
            base,
            "--distribution=multi_worker",
            *more,
            tf_config={"cluster": {"worker": places}, "task": {"type": "worker", "index": index}},
        )
        for index in range(2)
    ]


def finish(*processes):
    for process in processes:
        assert process.wait(timeout=300) == 0, process.text[-3000:]


@pytest.fixture(scope="module")
def outputs(base, mrpc, tmp_path_factory):
    """Dict from the way of running to its output folder."""
    folder = tmp_path_factory.mktemp("out")
    one = start(folder / "one", mrpc, base)
    two = start(folder / "two", mrpc, base, "--distribution=mirrored", devices=2)
    finish(one, two)
    finish(*workers(folder / "workers", mrpc, base))
    return {name: folder / name for name in ("one", "two", "workers")}


def several(method, base, mrpc, folder):
    """As `outputs`, of two tasks in mixed batches, 20 steps."""
    if not (mrpc.parent / "CoLA").exists():
        write_cola(mrpc.parent / "CoLA")
    more = ["--task_name=cola,mrpc", f"--data_dir={mrpc.parent}", "--num_train_epochs=2.9"]
    more.append(f"--tuning={method}")
    one = start(folder / "one", mrpc, base, *more)
    two = start(folder / "two", mrpc, base, *more, "--distribution=mirrored", devices=2)
    finish(one, two)
    finish(*workers(folder / "workers", mrpc, base, *more))
    return {name: folder / name for name in ("one", "two", "workers")}


@pytest.fixture(scope="module")
def trained(outputs, base, mrpc, tmp_path_factory):
    """A function from a method to its `outputs`; each runs once."""

    @functools.cache
    def trained(method):
        return (
            several(method, base, mrpc, tmp_path_factory.mktemp("several")) if method else outputs
        )

    return trained


# Each takes two minutes and more on two slow cores.
METHODS = [
    None,
    pytest.param("hyperformer++", marks=pytest.mark.slow),
    *(
        pytest.param(method, marks=pytest.mark.slow)
        for method in ("multitask_full", "multitask_adapters", "per_task_adapters", "pals")
    ),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["two", "workers"])
def test_trains_to_the_same_loss_and_weights(method, name, trained):
    outputs = trained(method)
    losses, weights = [], []
    for out in (outputs["one"], outputs[name]):
        rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        steps = [row["step"] for row in rows]
        assert steps[-1] == 20
        # A row has the mean since the one before, and a slow machine writes one more.
        losses.append(np.average([row["loss"] for row in rows], weights=np.diff([0, *steps])))
        weights.append(safetensors.numpy.load_file(out / "adapter" / "adapter.safetensors"))
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    for key, value in weights[0].items():
        np.testing.assert_allclose(weights[1][key], value, atol=1e-4, err_msg=key)


def mean_loss(out):
    """Over all steps; a row has the mean since the one before."""
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    steps = np.diff([0, *(row["step"] for row in rows)])
    return np.average([row["loss"] for row in rows], weights=steps)


@pytest.mark.slow
def test_a_fusion_is_held_near_the_identity_once(base, mrpc, tmp_path):
    """What is added to the loss is added once, and not for each replica."""
    model = AdapterModel(load_base(str(base)))
    for name in "ab":
        model.add_adapter(name, ["0", "1"], "pfeiffer", tuning=Tuning(train_layer_norm=False))
    fused = model.add_fusion("mrpc", ["a", "b"], ["0", "1"], texts=2)
    for name, variable in fused.named_variables().items():
        if name.endswith("value_kernel"):
            variable.assign_add(0.3 * np.ones((16, 16)))
    model.save_adapter("mrpc", tmp_path / "start")
    added = 2 * 0.01 * 16**2 * 0.3**2  # In two layers; so twice that would be seen below.
    slow = (f"--init_from={tmp_path}/start", "--learning_rate=1e-7")
    one = start(tmp_path / "one", mrpc, base, *slow)
    two = start(tmp_path / "two", mrpc, base, *slow, "--distribution=mirrored", devices=2)
    finish(one, two)
    losses = [mean_loss(tmp_path / name) for name in ("one", "two")]
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)
    evaluated = (tmp_path / "one" / "eval_results.txt").read_text()
    without = float(re.search("eval_loss = (.*)", evaluated)[1])
    assert losses[0] - without == pytest.approx(added, abs=0.05)


@pytest.mark.parametrize("name", ["two", "workers"])
def test_evaluates_every_example_once(name, outputs):
    metrics = [
        re.findall("eval_(accuracy|f1) = (.*)", (outputs[key] / "eval_results.txt").read_text())
        for key in ("one", name)
    ]
    assert metrics[0] == metrics[1] and len(metrics[0]) == 2
    rows = [np.loadtxt(outputs[key] / "test_results.tsv") for key in ("one", name)]
    assert rows[0].shape == rows[1].shape == (8, 2)
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-4)


@pytest.mark.parametrize(("name", "replicas"), [("one", 1), ("two", 2), ("workers", 2)])
def test_says_on_how_many_replicas_it_ran(name, replicas, outputs):
    assert json.loads((outputs[name] / "run.json").read_text())["replicas"] == replicas


LONG_RUN = ["--save_checkpoints_steps=5", "--num_train_epochs=2000"]


@pytest.mark.slow
def test_a_lost_worker_is_noticed_and_both_go_on_after_a_restart(base, mrpc, tmp_path):
    chief, other = workers(tmp_path / "out", mrpc, base, *LONG_RUN)
    _until(lambda: _saved(tmp_path / "out"), chief)
    other.send_signal(signal.SIGKILL)
    assert chief.wait(timeout=300) == 1  # By itself, however slow the machine is.
    assert "Another worker was lost" in chief.text

    again = workers(tmp_path / "out", mrpc, base, *LONG_RUN)
    _until(lambda: "examples/s" in again[0].text, again[0])
    for process in again:
        assert re.search(r"Resuming from step \d+", process.text)
        process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("asked", [(0, 1), (0,), (1,)])
def test_workers_that_are_asked_to_stop_lose_no_step(asked, base, mrpc, tmp_path):
    chief, other = both = workers(tmp_path / "out", mrpc, base, *LONG_RUN)
    _until(lambda: _saved(tmp_path / "out"), chief)
    for index in asked:
        both[index].send_signal(signal.SIGTERM)
    assert chief.wait(timeout=300) != 0 and other.wait(timeout=300) != 0
    stopped = re.search(r"Stopped at step (\d+), which is saved", chief.text)
    assert stopped, chief.text[-3000:]
    assert f"ckpt-{stopped[1]}.index" in _saved(tmp_path / "out")


def _saved(out):
    """Names of the checkpoints that are there."""
    return [path.name for path in (out / "checkpoints").glob("ckpt-*.index")]


def _until(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.text[-3000:]
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.slow
def test_a_batch_in_parts_is_the_same_on_two_devices_and_compiled(base, mrpc, tmp_path):
    """Each replica cuts its own share; XLA takes the loop over the parts."""
    parts = ("--train_batch_size=8", "--gradient_accumulation_steps=2")
    more = {
        "whole": (),
        "parts": parts,
        "two": (*parts, "--distribution=mirrored"),
        "compiled": (*parts, "--jit_compile"),
    }
    runs = [
        start(tmp_path / name, mrpc, base, *flags, devices=1 + (name == "two"))
        for name, flags in more.items()
    ]
    finish(*runs)
    found = {
        name: safetensors.numpy.load_file(tmp_path / name / "adapter" / "adapter.safetensors")
        for name in more
    }
    for name in more:
        record = json.loads((tmp_path / name / "run.json").read_text())
        assert (record["global_step"], record["replicas"]) == (20, 1 + (name == "two"))
        for key, value in found["whole"].items():
            np.testing.assert_allclose(found[name][key], value, atol=1e-4, err_msg=f"{name} {key}")
