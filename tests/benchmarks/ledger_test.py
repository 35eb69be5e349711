"""Rows that are added to, and the pages that are made of them."""

import dataclasses
import importlib
import json
import pathlib
import re

import pytest

from benchmarks import ledger, training_code

ROOT = pathlib.Path(ledger.__file__).parent.parent


def table(rows):
    return [f"{name}: {row['value']}" for name, row in sorted(rows.items())]


@pytest.fixture
def book(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table -->\nold\n<!-- end of table -->\nafter")
    return ledger.Ledger(tmp_path / "rows", page, lambda row: row["name"])


def test_what_has_a_row_is_not_missing(book):
    assert book.rows() == {} and book.missing("ab") == ["a", "b"]
    book.add("first", [{"name": "a", "value": 1}, {"name": "c", "value": 2}])
    book.add("second", [{"name": "a", "value": 3}])
    assert book.missing("abc") == ["b"]
    assert book.rows()["a"]["value"] == 3  # The last one counts.


def test_what_is_of_older_code_is_wanted_again(book):
    assert book.newest_code("first") is None
    book.add(
        "first", [{"name": "a", "value": 1}, {"name": "b", "value": 2, ledger.CODE_KEY: "old"}]
    )
    assert book.mark("second", [book.rows()["a"]]) == f" {ledger.OLD_CODE_MARK}"  # It does not say.
    book.add("first", [{"name": "c", "value": 3, ledger.CODE_KEY: "new"}])
    assert book.newest_code("first") == "new" and book.newest_code("second") is None
    assert book.missing("abcd") == ["d"] and book.missing("abcd", "new") == ["a", "b", "d"]
    old, new = book.rows()["b"], book.rows()["c"]
    assert (
        book.mark("first", [new]) == ""
        and book.mark("first", [new, old]) == f" {ledger.OLD_CODE_MARK}"
    )
    book.add("first", [{"name": "b", "value": 4, ledger.CODE_KEY: "new"}])
    assert book.missing("abcd", "new") == ["a", "d"] and book.rows()["b"]["value"] == 4
    lines = (book.folder / "first.jsonl").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == [1, 3, 4]  # The older one is gone.


def test_what_is_of_code_that_trains_alike_is_not_wanted_again(book, tmp_path, monkeypatch):
    monkeypatch.setattr(training_code, "EQUIVALENCES", tmp_path / "alike.jsonl")
    book.add("first", [{"name": "a", "value": 1, ledger.CODE_KEY: "old"}])
    assert book.missing("a", "new") == ["a"]
    training_code.record_equivalence(["old", "new"], ["adapters"])
    assert book.missing("a", "new") == [] and book.missing("a", "other") == ["a"]


def test_a_table_is_replaced_and_the_rest_stays(book):
    book.add("rows", [{"name": "a", "value": 1}])
    for _ in range(2):
        book.write_tables(table)
        expected = "before\n<!-- table -->\na: 1\n<!-- end of table -->\nafter"
        assert book.page.read_text() == expected


PAGES = ("results", "tpu_compile", "little_data", "fusion", "fusion_speed", "several_tasks")
PAGES += (
    "several_speed",
    "few_shot",
    "predicting",
    "low_resource",
    "hyper_ablations",
    "speed",
    "costs",
    "growth",
    "many_tasks",
    "techniques",
    "runtimes",
)


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_what_the_rows_make(name, tmp_path, monkeypatch):
    module = importlib.import_module(f"benchmarks.{name}")
    committed, page = module.LEDGER.page.read_bytes(), tmp_path / "page.md"
    page.write_bytes(committed)
    monkeypatch.setattr(module, "LEDGER", dataclasses.replace(module.LEDGER, page=page))
    assert len(module.LEDGER.rows()) > 1
    module.write_tables()
    assert page.read_bytes() == committed


def test_what_another_machine_measured_is_printed(book, monkeypatch, capsys):
    monkeypatch.setattr(ledger, "RESULTS", book.folder)
    book.add("rows", [{"name": "a", "value": 1}])
    before = book.page.read_text()
    book.write_tables(table)
    assert capsys.readouterr().out == "a: 1\n" and book.page.read_text() == before


def test_no_benchmark_looks_for_modules_by_itself():
    for path in (ROOT / "benchmarks").glob("*.py"):
        assert not re.search(r"sys\.path|python benchmarks/", path.read_text()), path.name
