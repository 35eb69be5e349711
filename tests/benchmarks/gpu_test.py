"""The benchmark of GPUs: its rows are resumed, limited and, the tiny ones, measured on a CPU."""

import collections
import json

import pytest

from benchmarks import gpu, gpu_rows

OPTIONS = {"data_dir": "", "tiny": True, "peer_path": "", "work": ""}


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "FOLDER", tmp_path)
    path = tmp_path / "tiny.jsonl"
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


def run(only="", tiny=True, minutes=8):
    gpu.run_missing("", tiny, only, minutes, "")


def test_only_what_is_missing_or_failed_is_measured(rows, monkeypatch, capsys):
    calls, fails = collections.Counter(), {"score", "command warm"}

    def measure(name, options, most_seconds):
        calls[name] += 1
        assert most_seconds > 0 and options["tiny"]
        return {"failed": "why"} if name in fails else {"ms": 1.5}

    monkeypatch.setattr(gpu, "measure", measure)
    run(only="step,score,command")
    steps = [name for name, row in gpu.PLAN.items() if row.function == "step"]
    assert calls == collections.Counter([*steps, "score", "command", "command warm"])
    fails.clear()
    run(only="step,score,command")
    # The first command, again, leaves the programs that the second one finds.
    twice = {"score", "command", "command warm"}
    assert {name for name, number in calls.items() if number == 2} == twice
    assert gpu.read_rows(tiny=True)["score"]["ms"] == 1.5 and not gpu.read_rows(tiny=False)
    run(minutes=0)  # No time for another row.
    assert len(rows()) == len(steps) + 6
    gpu.write_tables()
    assert "tiny score: " in capsys.readouterr().out


def test_times_are_measured_alone():
    groups = gpu.grouped(gpu.PLAN)
    assert [name for _, names in groups for name in names] == list(gpu.PLAN)
    for alone, names in groups:
        assert {gpu.PLAN[name].alone for name in names} == {alone}
    timed = ("step", "peer_step", "command", "score", "peer_score")
    assert all(row.alone == (row.function in timed) for row in gpu.PLAN.values())
    assert all(hasattr(gpu_rows, row.function) for row in gpu.PLAN.values())


def test_a_row_that_takes_too_long_or_fails_is_reported(monkeypatch):
    plan = {"slow": gpu.Row("step", {}, 0, True), "wrong": gpu.Row("none", {}, 60, True)}
    monkeypatch.setattr(gpu, "PLAN", plan)
    assert gpu.measure("slow", OPTIONS, 60) == {"failed": "no result within 0 s"}
    assert "KeyError" in gpu.measure("wrong", OPTIONS, 60)["failed"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["step base float32 no XLA"])
def test_a_tiny_row_is_measured_on_a_cpu(name, rows):
    run(only=name)
    (row,) = rows()
    assert row["device"] == "CPU" and not row["compiled"]
    assert row["ms"] > 0 and row["first_step_seconds"] > 0
