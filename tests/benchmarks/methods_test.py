"""The plan of the runs of methods, the table and the picture of their rows."""

import pytest

from benchmarks import methods
from benchmarks.result_cases import TASKS

METHOD = "LoRA 8"
GRID = methods.grid(METHOD)


def rows_of(runs, best):
    """Rows by run; the best learning rate has the highest metric."""
    return {
        run: run._asdict()
        | {
            "eval": {
                f"eval_{TASKS[run.task].metric}": 0.5
                + 0.1 * (run.learning_rate == best)
                + 0.01 * run.seed
            },
            "steps": 3,
            "trained": 1234,
            "examples_per_cpu_second": 7.6,
            "processor": "one",
        }
        for run in runs
    }


def test_a_rate_is_chosen_by_a_complete_grid():
    best = GRID[1].learning_rate
    assert methods.chosen(rows_of(GRID[1:], best), METHOD) is None
    assert methods.chosen(rows_of(GRID, best), METHOD) == best
    assert methods.chosen({}, "full") == "1e-4" and not methods.grid("full")
    assert methods.chosen(rows_of(GRID, best), "LoRA 24") == best


def test_the_plan_has_what_is_known():
    grids = [run for method in methods.METHODS for run in methods.grid(method)]
    plan = methods.plan({})
    assert plan[: len(grids)] == grids
    assert {run.method for run in plan[len(grids) :]} == {"adapters 8", "adapters 64", "full"}
    more = methods.plan(rows_of(GRID, GRID[1].learning_rate))
    # Of LoRA 8 one run is of the grid.
    assert len(set(more) - set(plan)) == 2 * 4 * 5 - 1
    assert len(set(more)) == len(more)


@pytest.fixture
def rows():
    best = GRID[0].learning_rate
    own = [methods.Run(task, METHOD, best, seed) for task in ("mrpc", "cola") for seed in range(3)]
    return rows_of([*GRID, *own], best)


def test_tables(rows):
    line, *_ = methods.methods(rows)[2:]
    cells = "61.0 (60.0-62.0) | 61.0 (60.0-62.0) |  |  |"
    assert line == f"| {METHOD} | 3e-4 | 1,234 | 8 | {cells}"
    others = "".join(f", {run.learning_rate}: 50.0" for run in GRID[1:])
    assert f"| {METHOD} | 3e-4: 60.0{others} |" in methods.methods_grid(rows)
    assert not methods.methods({})[2:]


def test_the_picture_has_what_is_measured(rows):
    assert methods.draw({}) is None
    assert methods.draw(rows).startswith(b"\x89PNG")
    assert methods.MARKS.keys() == methods.METHODS.keys()
    assert len(set(methods.MARKS.values())) == len(methods.MARKS)
