"""Real training runs on real data, minutes each (`make test-slow`): the numbers of the README."""

import collections
import functools
import itertools
import pathlib
import re
import statistics
import subprocess
import sys

import pytest

from benchmarks import measuring, speed

ROOT = pathlib.Path(__file__).parent.parent
pytestmark = pytest.mark.slow

FLOORS = {
    "MRPC": {"eval_accuracy": 0.80, "eval_f1": 0.86},
    "CoLA": {"eval_mcc": 0.25},
}


def _run(arguments):
    result = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


def _train(task, out, *arguments):
    printed = _run(
        [
            "run_classifier.py",
            f"--task_name={task}",
            "--do_train",
            "--do_eval",
            f"--output_dir={out}",
            *arguments,
        ]
    )
    results = dict(re.findall(r"^(\w+) = (.*)$", (out / "eval_results.txt").read_text(), re.M))
    return printed, {name: float(value) for name, value in results.items()}


@pytest.fixture(scope="module")
def medians(real_data, tmp_path_factory):
    """Function of a task and a precision: the median of each result over three seeds."""

    @functools.cache
    def measure(task, precision="float32"):
        found = []
        for seed in range(3):
            printed, results = _train(
                task,
                tmp_path_factory.mktemp(task) / "out",
                f"--data_dir={real_data}/glue/{task}",
                f"--seed={seed}",
                "--learning_rate=1e-3",
                "--num_train_epochs=5",
                "--train_batch_size=32",
                "--max_seq_length=128",
                f"--precision={precision}",
            )
            found.append(results)
            total, trained = (int(n) for n in re.findall(r"Parameters = (\d+) \*", printed))
            assert trained / total <= 0.035
        print(task, precision, found)
        return {name: statistics.median(result[name] for result in found) for name in found[0]}

    return measure


@pytest.mark.parametrize("task", FLOORS)
def test_adapters_reach_what_the_pytorch_library_reaches(task, medians):
    for name, floor in FLOORS[task].items():
        assert medians(task)[name] >= floor, medians(task)


def test_bfloat16_stays_within_a_point(medians):
    there, here = medians("MRPC"), medians("MRPC", "bfloat16")
    for name in FLOORS["MRPC"]:
        assert abs(here[name] - there[name]) <= 0.01, (there, here)


@pytest.mark.parametrize("task", ["demo_factuality", "demo_paraphrase"])
def test_adapters_clearly_beat_the_head_alone_on_the_shipped_data(task, tmp_path):
    settings = ["--num_train_epochs=10", "--train_batch_size=16", "--max_seq_length=64"]
    accuracy = {}
    for tuning in ("adapters", "head"):
        accuracy[tuning] = statistics.median(
            _train(
                task,
                tmp_path / f"{tuning}{seed}",
                f"--seed={seed}",
                f"--tuning={tuning}",
                *settings,
            )[1]["eval_accuracy"]
            for seed in range(3)
        )
    assert accuracy["adapters"] >= accuracy["head"] + 0.08, accuracy


def test_more_than_twice_as_fast_as_the_pytorch_library(real_data):
    """In turns; a busy machine slows both."""
    rates = collections.defaultdict(list)
    for _, system in itertools.product(range(3), (speed.PEER, speed.OURS)):
        found = measuring.run_in_process(
            "benchmarks.speed", "mrpc", system, f"{real_data}/glue/MRPC"
        )
        rates[system].append(found["examples_per_second"])
    ours, peer = (statistics.median(rates[system]) for system in (speed.OURS, speed.PEER))
    assert ours >= 2.5 * peer, rates
