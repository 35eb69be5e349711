"""The plan of the runs of methods, the table and the picture of their rows."""

import functools
import operator

import pytest

from benchmarks import methods
from benchmarks.result_cases import TASKS

METHOD = "LoRA 8"
ON_MRPC = {"3e-4": 0.6, "1e-3": 0.78, "3e-3": 0.8, "1e-2": 0.5}
ON_COLA = {"1e-3": 0.3, "3e-3": 0.1}


def rows_of(task, scores, seed=0):
    """Rows by run, from the metric of each learning rate."""
    runs = {methods.Run(task, METHOD, rate, seed): value for rate, value in scores.items()}
    return {
        run: run._asdict()
        | {
            "eval": {f"eval_{TASKS[task].metric}": value},
            "steps": 3,
            "trained": 1234,
            "examples_per_cpu_second": 7.6,
            "processor": "one",
        }
        for run, value in runs.items()
    }


GRID = rows_of("mrpc", ON_MRPC) | rows_of("cola", ON_COLA)


def test_the_better_of_two_on_both_tasks_is_chosen():
    first = methods.grid(METHOD, {})
    assert [(run.task, run.learning_rate) for run in first] == [("mrpc", r) for r in ON_MRPC]
    second = methods.grid(METHOD, rows_of("mrpc", ON_MRPC))[len(first) :]
    assert [(run.task, run.learning_rate) for run in second] == [("cola", "3e-3"), ("cola", "1e-3")]
    assert methods.chosen(rows_of("mrpc", ON_MRPC), METHOD) is None
    assert methods.chosen(GRID, METHOD) == methods.chosen(GRID, "LoRA 24") == "1e-3"
    assert methods.chosen({}, "full") == "1e-4" and not methods.grid("full", {})


def test_the_plan_has_what_is_known():
    grids = [run for method in methods.METHODS for run in methods.grid(method, {})]
    plan = methods.plan({})
    assert plan[: len(grids)] == grids
    assert {run.method for run in plan[len(grids) :]} == {"adapters 8", "adapters 64", "full"}
    more = methods.plan(GRID)
    # The grid has two more runs; of LoRA 8 it has two of those of all seeds.
    assert len(set(more) - set(plan)) == 2 + 2 * 4 * 5 - 2
    assert len(set(more)) == len(more)


@pytest.fixture
def rows():
    more = (rows_of(task, {"1e-3": 0.8}, seed) for task in ("mrpc", "cola") for seed in (1, 2))
    return functools.reduce(operator.or_, more, GRID)


def test_tables(rows):
    line, *_ = methods.methods(rows)[2:]
    cells = "80.0 (78.0-80.0) | 80.0 (30.0-80.0) |  |  |"
    assert line == f"| {METHOD} | 1e-3 | 1,234 | 8 | {cells}"
    cells = "3e-4: 60.0, 1e-3: 78.0, 3e-3: 80.0, 1e-2: 50.0 | 1e-3: 30.0, 3e-3: 10.0"
    assert f"| {METHOD} | {cells} |" in methods.methods_grid(rows)
    assert not methods.methods({})[2:]


def test_the_picture_has_what_is_measured(rows):
    assert methods.draw({}) is None
    assert methods.draw(rows).startswith(b"\x89PNG")
    assert methods.MARKS.keys() == methods.METHODS.keys()
    assert len(set(methods.MARKS.values())) == len(methods.MARKS)
