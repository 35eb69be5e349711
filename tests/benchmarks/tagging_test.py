"""The plan of the runs on WNUT-17, and the tables of their rows."""

import collections

import pytest

from benchmarks import tagging, tagging_peer
from benchmarks.tagging import OURS

CASE = (OURS, "adapters 64")
Place = collections.namedtuple("Place", "start end")
GRID = tagging.grid(*CASE)


def rows_of(runs, best=None):
    """Rows by run; the best has the highest F1 on dev."""
    return {
        run: run._asdict()
        | {"dev_f1": 0.4 + 0.01 * (run == best), "test_f1": 0.3 + run.seed / 100}
        | {"trained": 1000, "cpu_seconds": 12.4}
        for run in runs
    }


def test_all_grids_come_first():
    plan = tagging.plan({})
    assert len(plan) == len(set(plan)) == 18 and {run.seed for run in plan} == {0}


@pytest.mark.parametrize("best", [GRID[0], GRID[4]])
def test_the_best_on_dev_is_run_with_all_seeds(best):
    rows = rows_of(GRID, best)
    assert tagging.chosen(rows, *CASE) == [best._replace(seed=seed) for seed in range(5)]
    assert not tagging.chosen(rows_of(GRID[1:]), *CASE)
    assert len(tagging.plan(rows)) == 18 + 4


def test_tables():
    best = GRID[4]
    rows = rows_of([*GRID, *(best._replace(seed=seed) for seed in (1, 2))], best)
    line, *_ = tagging.tagging(rows)[2:]
    assert line.startswith(f"| {OURS} | adapters 64 | 1e-3 | 10 | ")
    assert line.endswith(" | 31.0 (30.0-32.0) | 3 | 1,000 | 12 |")
    assert f"| {OURS} | adapters 64 | 10 | 3e-4: 40.0, 1e-3: 41.0, 3e-3: 40.0 |" in (
        tagging.tagging_grid(rows)
    )


def test_the_picture_has_what_is_chosen():
    both = rows_of([*GRID, *tagging.grid(OURS, "full")], GRID[4])
    assert tagging.draw(rows_of(GRID, GRID[4])) is None
    assert tagging.draw(both).startswith(b"\x89PNG")


def test_the_entities_of_the_peer_are_those_of_its_tags():
    words = [("B-a", 0.9, Place(0, 2)), ("I-a", 0.7, Place(3, 5)), ("I-b", 0.8, Place(6, 7))]
    assert tagging_peer._entities("ab cd e", words) == [
        {"type": "a", "start": 0, "end": 5, "text": "ab cd", "probability": 0.7},
        {"type": "b", "start": 6, "end": 7, "text": "e", "probability": 0.8},
    ]
