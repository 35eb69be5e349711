"""Killed at any change of any file and started again, a run leaves what it leaves undisturbed."""

import random

import pytest

from tests.kill import recorded
from tests.kill.restart import FAILED
from tests.kill.scenes import SCENES

pytestmark = pytest.mark.skipif(recorded.compiler() is None, reason="there is no C compiler")
SOME = 3


def failures(run, points):
    """Prints a line a point, as they come; the lines of those that failed."""
    failed, wrong = [], False
    for line in run.restart(points):
        print(line, flush=True)
        wrong = line.startswith(FAILED) or (wrong and line.startswith(" "))
        failed += [line] if wrong else []
    return failed


@pytest.mark.long
def test_killed_at_some_points(tmp_path):
    """Points in the folder's copies, and one at which the process really dies."""
    run = recorded.Recorded(SCENES["fresh"], tmp_path)
    titles = random.Random(0).sample(sorted(run.points), SOME - 1)
    points = {title: run.points[title] for title in titles}
    points["killed in truth"] = run.kill(run.count // 2)
    assert not failures(run, points)


@pytest.mark.kill
@pytest.mark.parametrize("scene", SCENES)
def test_killed_at_every_point(scene, tmp_path, capsys):
    run = recorded.Recorded(SCENES[scene], tmp_path)
    with capsys.disabled():
        print(f"\n{scene}: {run.count} points, {len(run.points)} different folders", flush=True)
        failed = failures(run, run.points)
    assert not failed
