"""Progress lines, by a fake clock."""

import time

import pytest

from adapter_bert_tf.training.progress import RowProgress


@pytest.fixture
def clock(monkeypatch):
    """A list of one number, the time in seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_line_every_few_seconds(clock, capsys):
    batches = [[number] * 300 for number in range(6)]
    progress = RowProgress("mrpc test", 1725).track(batches)
    tracked = []
    for clock[0] in (102.0, 104.0, 106.0, 108.0, 110.0, 112.0):
        tracked.append(next(progress))
    assert tracked == batches
    assert capsys.readouterr().out.splitlines() == [
        "mrpc test: 900 of 1,725  150 rows/s  ETA 0:06",  # 825 at 900 in 6 seconds: 5.5.
        "mrpc test: 1,725 of 1,725  144 rows/s  ETA 0:00",  # The last rows only fill up the batch.
    ]


def test_short_work_prints_no_line(clock, capsys):
    progress = RowProgress("mrpc test", 1725)
    for clock[0] in (101.0, 104.9):
        progress.add(900)
    assert not capsys.readouterr().out


def test_the_time_left_of_a_file_by_its_bytes(clock, capsys):
    progress = RowProgress("many.csv")
    for clock[0], fraction in ((103.0, 0.1), (110.0, 0.2), (112.0, 0.5), (120.0, 0.8)):
        progress.add(2000, fraction)
    assert capsys.readouterr().out.splitlines() == [
        "many.csv: 4,000 rows  400 rows/s  ETA 0:40",
        "many.csv: 8,000 rows  400 rows/s  ETA 0:05",
    ]
