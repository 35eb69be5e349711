"""Cases on several cores: all are run, and an error ends the others."""

import threading
import time

import pytest

from benchmarks import runner


@pytest.mark.parametrize(("workers", "cores"), [(1, {None}), (2, {0, 1})])
def test_all_cases_run(workers, cores):
    left, used = [1, 2, 3, 4], set()

    def run(case, core):
        left.remove(case)
        used.add(core)

    runner.run_on_cores(lambda: list(left), run, workers)
    assert not left and used and used <= cores


def test_a_case_that_becomes_known_begins_on_a_free_core():
    left, ended = ["slow", "quick"], threading.Event()

    def run(case, core):
        if case == "slow":
            assert ended.wait(10), "the case that was found later has not run"
        if case == "quick":
            left.append("found")
        left.remove(case)
        if case == "found":
            ended.set()

    runner.run_on_cores(lambda: list(left), run, 2)
    assert not left


def test_an_error_ends_the_cases_that_have_not_begun():
    begun = []

    def run(case, core):
        begun.append(case)
        time.sleep(0.01)
        raise ValueError(case)

    with pytest.raises(ValueError):
        runner.run_on_cores(lambda: list(range(500)), run, 1)
    assert len(begun) < 500
