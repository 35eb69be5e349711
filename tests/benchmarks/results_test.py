"""The tables of docs/results.md are made of the raw rows and nothing else."""

import dataclasses
import json

import pytest

from adapter_bert_tf.analysis import __main__ as analysis
from benchmarks import ledger, results


def _row(task, method, seed, value, seconds):
    return {
        "task": task,
        "method": method,
        "seed": seed,
        "command": f"python run {method}",
        "eval": {f"eval_{results.TASKS[task].metric}": value},
        "trained": 250,
        "total": 10000,
        "cpu_seconds": seconds,
        "examples_per_cpu_second": 100.0,
        ledger.CODE_KEY: "today's",
    }


@pytest.fixture
def files(tmp_path, monkeypatch):
    rows = [
        _row("rte", method, seed, base + seed / 100, 10.0 + seed)
        for method, base in (("full", 0.60), ("adapters 64", 0.59))
        for seed in range(3)
    ]
    asked = _row("rte", "head", 0, 0.5, 1.0)
    asked |= {"task": "squad", "eval": {"exact_match": 51.25, "f1": 62.5}}
    del asked[ledger.CODE_KEY]  # As rows were at first.
    page = tmp_path / "results.md"
    elsewhere = dataclasses.replace(results.LEDGER, folder=tmp_path, page=page)
    monkeypatch.setattr(results, "LEDGER", elsewhere)
    for name, lines in (("classification", rows), ("squad", [asked])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    marks = "".join(
        f"<!-- {name} -->\n<!-- end of {name} -->\nprose\n"
        for name in ("comparison", "details", "squad", "commands")
    )
    page.write_text(f"# Results\n{marks}")
    return page


def test_medians_ranges_and_differences(files):
    results.write_tables()
    text = files.read_text()
    assert "| rte | accuracy | 61.0 (60.0-62.0) | 60.0 (59.0-61.0) | -1.0 | 3 |" in text
    assert "| **mean** | | | | **-1.00** | |" in text
    assert "| rte | full | accuracy | 61.0 (60.0-62.0) | 250 | 2.50% | 11 | 100 |" in text
    assert "python run adapters 64\n" in text and text.count("prose") == 4
    assert "| head † | 51.2 | 62.5 | 1 | 250 | 2.50% | 1 | 100 |" in text


def test_writing_again_changes_nothing(files):
    results.write_tables()
    before = files.read_text()
    results.write_tables()
    assert files.read_text() == before


def test_the_plan_is_what_the_document_says():
    plan = results.plan()
    assert len(plan) == len(set(plan)) == 6 * 3 * 2 + 2 * 2 + 3 * 8 + 2 * 3 + 5 + 6
    assert {task for task, _, _ in plan} == set(results.TASKS)
    assert {task for task, _, _ in plan[-8:]} == {"20_newsgroups", "squad"}


def test_the_map_of_sizes_is_that_of_the_rows(tmp_path):
    """docs/figures/size_map.csv, from which its picture is drawn, is of the ledgers as they are."""
    ledgers = results.ROOT / "benchmarks" / "results"
    rows = [str(ledgers / f"{name}.jsonl") for name in ("classification", "squad")]
    tasks = "--tasks=mrpc,cola,sts-b,squad"
    assert analysis.main(["size_map", *rows, tasks, f"--output_dir={tmp_path}"]) == 0
    committed = results.ROOT / "docs" / "figures" / "size_map.csv"
    assert (tmp_path / "size_map.csv").read_bytes() == committed.read_bytes()
