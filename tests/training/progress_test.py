"""Lines for people who wait, by a clock of the test's own."""

import time

import pytest

from adapter_bert_tf.predict.progress import RowProgress
from adapter_bert_tf.training import progress


@pytest.fixture
def clock(monkeypatch):
    """A list of one number, the time in seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_rows_that_are_done_are_said_every_few_seconds(clock, capsys):
    seen = progress.RowCounter("mrpc test", 1725)
    for clock[0] in (102.0, 104.0, 106.0, 108.0, 110.0, 112.0):
        assert seen.counted([0] * 300) == [0] * 300
    assert capsys.readouterr().out.splitlines() == [
        "mrpc test: 900 of 1,725  150 rows/s  ETA 0:06",  # 825 at 900 in 6 seconds: 5.5.
        "mrpc test: 1,725 of 1,725  144 rows/s  ETA 0:00",  # The last rows only fill up the batch.
    ]


def test_what_takes_less_is_done_without_a_line(clock, capsys):
    seen = progress.RowCounter("mrpc test", 1725)
    for clock[0] in (101.0, 104.9):
        seen.counted([0] * 900)
    assert not capsys.readouterr().out


def test_a_file_whose_rows_are_not_counted_yet(clock, capsys):
    """The time left is told by the share of its bytes."""
    shown = RowProgress("many.csv")
    for clock[0], share in ((103.0, 0.1), (110.0, 0.2), (112.0, 0.5), (120.0, 0.8)):
        shown.add(2000, share)
    assert capsys.readouterr().out.splitlines() == [
        "many.csv: 4,000 rows  400 rows/s  ETA 0:40",
        "many.csv: 8,000 rows  400 rows/s  ETA 0:05",
    ]
