"""The TPU compiler takes the steps; the tables and the search are made of what it said."""

import dataclasses
import json
import subprocess
import sys

import pytest

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from benchmarks import step_models, tpu_cases, tpu_compile, tpu_hlo

FAST = ("lora", "prefix", "unipelt")
CASE = step_models.Case(
    chip="v5e",
    step="train",
    base="tiny",
    head="classes",
    outputs=2,
    adapter="houlsby",
    adapter_size=4,
    optimizer="adamw",
    precision="bfloat16",
    length=16,
    batch=2,
)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("head", "adapter", "chip"),
    [
        ("classes", "houlsby", "v5e"),
        *(
            pytest.param("classes", preset, "v5e", marks=() if preset in FAST else pytest.mark.slow)
            for preset in PRESETS
            if preset != "houlsby"
        ),
        ("words", tpu_cases.LANGUAGE, "v5e"),
        ("classes", tpu_cases.STACK, "v5e"),
        *(
            pytest.param("several", adapter, chip, marks=marks)
            for adapter in ("full", "shared", "houlsby", "hyperformer", "hyperformer++", "pals")
            for chip, marks in (("v5e", ()), ("v4", pytest.mark.slow))
        ),
    ],
)
def test_a_training_step_compiles_for_a_tpu_that_is_not_there(head, adapter, chip):
    has_size = "size" in PRESETS.get(adapter, AdapterConfig()).adjustable
    size = CASE.adapter_size if has_size else 0
    case = dataclasses.replace(CASE, head=head, adapter=adapter, chip=chip, adapter_size=size)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tpu_hlo", json.dumps([vars(case)])],
        cwd=tpu_compile.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["compiles"], row
    assert row["flops"] > 1e5 and row["memory"]["argument"] > step_models.VOCABULARY * 16 * 4
    assert row["unwelcome"] == {}


def test_what_a_tpu_does_not_like_is_found():
    text = """
  %a.1 = s64[2]{0} parameter(0)
  %b.1 = s64[2]{0} add(%a.1, %a.1)
  %c.1 = f32[4]{0} rng(%d.1, %d.1), distribution=rng_uniform
  ROOT %e.1 = (f32[4]{0}) tuple(%c.1)
"""
    assert tpu_hlo.unwelcome(text) == {"s64": 1, "stateful rng": 1}


@pytest.mark.parametrize(
    ("start", "limit", "expected"), [(8, 64, 64), (8, 100, 64), (64, 8, 8), (64, 64, 64), (4, 0, 0)]
)
def test_the_largest_batch_is_found_from_any_start(start, limit, expected, monkeypatch):
    monkeypatch.setattr(tpu_compile, "guess", lambda case: start)
    assert tpu_compile.largest(CASE, lambda batch: batch <= limit) == expected
    assert tpu_compile.largest(CASE, lambda batch: None) is None


@pytest.fixture
def files(tmp_path, monkeypatch):
    page = tmp_path / "tpu.md"
    elsewhere = dataclasses.replace(tpu_compile.LEDGER, folder=tmp_path, page=page)
    monkeypatch.setattr(tpu_compile, "LEDGER", elsewhere)
    marks = "".join(
        f"<!-- {name} -->\n<!-- end of {name} -->\nprose\n"
        for name in ("batches", "presets", "languages", "steps")
    )
    page.write_text(f"# TPU\n{marks}")
    return tpu_compile


def write(cases, memory):
    """A result for each case, too large where `memory` is None."""
    rows = [
        {"case": vars(case)}
        | (
            {"compiles": False, "error": "Used 17G of 15.75G hbm"}
            if bytes_ is None
            else {"compiles": True, "flops": 1.5e12, "memory": {"argument": 2**30, "temp": bytes_}}
        )
        for case, bytes_ in zip(cases, memory, strict=True)
    ]
    tpu_compile.LEDGER.add("compiles", rows)


def test_the_tables_say_what_was_found(files):
    case = next(case for case in tpu_cases.searches() if case.chip == "v5e")
    cases = [case, *(dataclasses.replace(case, batch=batch) for batch in (256, 512))]
    example = 2**30 * 15 // 256  # So that 256 is the guess.
    write(cases, [case.batch * example, 15 * 2**30, None])
    files.write_tables()
    text = files.LEDGER.page.read_text()
    share = (1 + case.batch * 15 / 256) / 16
    assert f"| {case.batch * 60:,} MiB | {share:.1%} | 1.50e+12 |" in text
    assert "| 256 | 15,360 MiB | Used 17G of 15.75G hbm |" in text
    assert "not tried" in text and text.count("prose") == 4


def test_steps_of_plain_text_and_stacks_have_their_table(files):
    cases = tpu_cases.language_cases()
    write(cases[::2], [0, 0])
    lines = files.languages(files.LEDGER.rows())[2:]
    assert [line.split(" | ")[:2] for line in lines] == [
        ["| masked words, `pfeiffer+inv`", "train"],
        ["| 2 classes, `pfeiffer` on `pfeiffer+inv`", "train"],
    ]


def test_only_what_is_missing_is_compiled(files, monkeypatch):
    write([CASE], [0])
    monkeypatch.setattr(files.subprocess, "run", None)
    assert files.compile_missing([CASE])[CASE]["compiles"]


def test_a_process_that_fails_is_no_result(files, monkeypatch):
    monkeypatch.setattr(files, "ROOT", files.LEDGER.folder)
    with pytest.raises(RuntimeError, match="No module named"):
        files.compile_missing([CASE])
    assert files.LEDGER.rows() == {}
