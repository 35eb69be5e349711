"""Replicas on the devices of one machine: another number of them, evaluations, exports, precision.

Two logical CPUs, or two logical GPUs of one card where there is one (`pytest -m gpu`). NCCL needs a
card for each replica, so TensorFlow reduces between logical devices by its ring. The base has no
dropout, as in `distribution_test.py`.
"""

import glob
import json
import os

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from adapter_bert_tf.training.device.strategy import make_strategy
from tests import processes, support
from tests.run.distribution_test import CONFIG, EPOCHS, FLAGS
from tests.runs import ROOT, write_mrpc

HAS_GPU = bool(glob.glob("/dev/nvidia[0-9]*"))
KINDS = [
    pytest.param("cpu", marks=pytest.mark.long),
    pytest.param(
        "gpu", marks=[pytest.mark.gpu, pytest.mark.skipif(not HAS_GPU, reason="no GPU here")]
    ),
]
MIRRORED = ("--distribution=mirrored", "--save_checkpoints_steps=8")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "google"
    support.write_google(folder, config=CONFIG)
    return folder


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    """A task whose dev set no batch size divides."""
    folder = write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")
    dev = folder / "dev.tsv"
    dev.write_text("".join(dev.read_text().splitlines(keepends=True)[:-3]))
    return folder


@pytest.fixture(scope="module")
def run(base, mrpc, tmp_path_factory):
    """A function that runs the command on so many devices of a kind; returns folder and text."""
    folder = tmp_path_factory.mktemp("out")

    def run(name, kind, devices, *more):
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        if kind == "gpu":
            environment.pop("CUDA_VISIBLE_DEVICES", None)
        out = folder / name
        data = (f"--data_dir={mrpc}", f"--base_model={base}", f"--output_dir={out}", "--noreport")
        count = f"gpu:{devices}" if kind == "gpu" else devices
        words = ["tests/launch.py", count, "run_classifier.py", *FLAGS, EPOCHS, *data, *more]
        process = processes.Process(words, env=environment)
        assert process.wait(timeout=300) == 0, process.text[-3000:]
        return out, process.text

    return run


def interrupt_at_16(out):
    """Leaves what a run that was killed after step 16 of 20 leaves."""
    for path in (*out.glob("checkpoints/ckpt-20.*"), out / "run.json"):
        path.unlink()
    (out / "adapter" / "adapter.safetensors").unlink()


def weights(out):
    return safetensors.numpy.load_file(out / "adapter" / "adapter.safetensors")


def assert_same(found, expected, atol):
    for name, value in weights(expected).items():
        np.testing.assert_allclose(weights(found)[name], value, atol=atol, err_msg=name)


def replicas(out):
    return json.loads((out / "run.json").read_text())["replicas"]


@pytest.mark.parametrize("kind", KINDS)
def test_another_number_of_devices_continues_the_run(kind, run):
    one, _ = run(f"{kind}-one", kind, 1, *MIRRORED)
    two, _ = run(f"{kind}-two", kind, 2, *MIRRORED)
    assert (replicas(one), replicas(two)) == (1, 2)
    assert_same(two, one, 1e-4)
    interrupt_at_16(two)
    _, text = run(f"{kind}-two", kind, 1, *MIRRORED)
    assert "Resuming from step 16" in text and replicas(two) == 1
    assert_same(two, one, 1e-4)
    interrupt_at_16(two)
    _, text = run(f"{kind}-two", kind, 2, *MIRRORED)
    assert "Resuming from step 16" in text and replicas(two) == 2
    assert_same(two, one, 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_evaluations_exports_and_precision(kind, run, mrpc):
    """Every dev row counts once in each evaluation; the SavedModel answers as the run does."""
    flags = ("--eval_every_steps=10", "--keep=best", "--do_export", "--precision=bfloat16")
    losses = []
    for devices in (1, 2):
        out, _ = run(f"{kind}-best{devices}", kind, devices, *MIRRORED, *flags)
        rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        evaluated = [row for row in rows if "dev/eval_loss" in row]
        assert [row["step"] for row in evaluated] == [10, 20]
        losses.append([row["dev/eval_loss"] for row in evaluated])
    np.testing.assert_allclose(losses[1], losses[0], atol=0.01)  # bfloat16 has three digits.
    served = tf.saved_model.load(str(out / "saved_model")).signatures["serving_default"]
    lines = (mrpc / "test.tsv").read_text().splitlines()[1:]
    first, second = zip(*(line.split("\t")[3:] for line in lines), strict=True)
    answers = served(text_a=tf.constant(first), text_b=tf.constant(second))
    probabilities = answers["probabilities"]
    np.testing.assert_allclose(probabilities, np.loadtxt(out / "test_results.tsv"), atol=0.01)


def test_cpus_reduce_by_a_ring():
    """What TensorFlow chooses itself for all that is not a GPU of its own."""
    strategy = make_strategy("mirrored")
    operations = strategy.extended._cross_device_ops
    implementation = tf.distribute.experimental.CommunicationImplementation
    assert isinstance(operations, type(strategy.extended._collective_ops))
    assert strategy.extended._communication_options.implementation is implementation.RING
