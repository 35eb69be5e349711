"""The files of `examples/`, each run in an empty folder on the default base."""

import os
import sys

import pytest

from tests import processes
from tests.runs import ROOT

SAID = {
    "sentiment.py": ["'eval_accuracy': ", "'label': '", "-> {"],
    "two_tasks_one_base.py": ["topic: ", "mood: "],
    "many_labels.py": ["eval_micro_f1_std = ", "Labels of dev:", "{'labels': ["],
}


def test_every_example_is_run():
    assert {path.name for path in (ROOT / "examples").iterdir() if path.suffix} == set(SAID)


MARKS = dict.fromkeys(SAID, pytest.mark.slow) | {"sentiment.py": pytest.mark.long}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS[name]) for name in SAID])
def test_an_example(name, tmp_path):
    done = processes.run(
        [sys.executable, ROOT / "examples" / name],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    for part in SAID[name]:
        assert part in done.stdout, done.stdout
