"""A job answers as `predict` does, in shards that are whole or not there, and goes on."""

import csv
import glob
import gzip
import json
import os
import pathlib

import apache_beam as beam
import pyarrow.parquet
import pytest
from apache_beam.transforms.environments import DockerEnvironment

from adapter_bert_tf.beam import job as jobs
from adapter_bert_tf.beam import shards
from adapter_bert_tf.beam.pipeline import build
from adapter_bert_tf.beam.scorer import Scorer
from adapter_bert_tf.beam.workers import local_runner
from adapter_bert_tf.data.tables import rows as table_rows
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict.predictor import Predictor
from tests.predict.predictor_test import BASE, PAIRS, SCORES, SPANS, texts
from tests.refusals import raises_code

COLUMNS = ("sentence1", "sentence2")


def write_csv(path, rows, names=("id", *COLUMNS)):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def pairs(count, seed=0):
    both = zip(texts(count, seed), texts(count, seed + 1), strict=True)
    return [(f"{i:03d}", *pair) for i, pair in enumerate(both)]


@pytest.fixture
def asked(tmp_path):
    """A folder of two tables, of 23 and 9 rows."""
    write_csv(tmp_path / "in" / "a.csv", pairs(23))
    write_csv(tmp_path / "in" / "b.csv", pairs(9, seed=2))
    return tmp_path / "in"


def score(inputs, output, adapters=(PAIRS,), **options):
    options = {"base": BASE, "part_rows": 10, "batch_size": 4} | options
    columns = dict(zip(("text_a_column", "text_b_column"), COLUMNS, strict=True))
    inputs = [str(path) for path in (inputs if isinstance(inputs, list) else [inputs])]
    adapters = [adapter if isinstance(adapter, tuple) else ("", adapter) for adapter in adapters]
    return jobs.score(adapters, inputs, str(output), **columns | options)


def read(output, pattern="*.csv"):
    """Rows of the shards, in the order of their keys."""
    files = sorted(glob.glob(f"{output}/{pattern}"))
    rows = [row for path in files for row in csv.DictReader(read_text(path).splitlines())]

    return sorted(rows, key=lambda row: (row["source_file"], int(row["source_row"])))


def read_text(path):
    return pathlib.Path(path).read_text()


def contents(output):
    """What a job has written, but for the names of its runs."""
    files = {p for p in pathlib.Path(output).rglob("*") if p.is_file()}
    texts_by_name = {str(p.relative_to(output)): p.read_text() for p in files}
    for name, text in texts_by_name.items():
        if name == "summary.json" or name.startswith("_parts"):
            texts_by_name[name] = {k: v for k, v in json.loads(text).items() if k != "run"}
    return texts_by_name


def test_answers_are_those_of_predict(asked, tmp_path):
    summary = score(asked, tmp_path / "out")
    assert summary["rows"] == 32 and summary["parts"] == 4 and not summary["bad_rows"]
    assert summary["labels"].keys() <= {"0", "1"} and sum(summary["labels"].values()) == 32
    predictor = Predictor(PAIRS, base=BASE, batch_size=4)
    rows = read(tmp_path / "out")
    assert len(rows) == 32 and rows[0]["id"] == "000"
    answers = predictor([(row[COLUMNS[0]], row[COLUMNS[1]]) for row in rows])
    for row, answer in zip(rows, answers, strict=True):
        assert row["label"] == answer["label"]
        found = [float(row[f"probability_{label}"]) for label in ("0", "1")]
        assert found == pytest.approx(list(answer["probabilities"].values()), abs=1e-6)
    keys = [(row["source_file"], int(row["source_row"])) for row in rows]
    assert keys == [("a.csv", i) for i in range(23)] + [("b.csv", i) for i in range(9)]


def test_equal_parts_have_equal_bytes(asked, tmp_path):
    score(asked, tmp_path / "out")
    predictor = Predictor(PAIRS, base=BASE, batch_size=4)
    rows = read(tmp_path / "out", "a-00001.csv")
    answers = predictor([(row[COLUMNS[0]], row[COLUMNS[1]]) for row in rows])
    found = [float(row["probability_1"]) for row in rows]
    assert found == [answer["probabilities"]["1"] for answer in answers]


def test_a_second_run_writes_the_same(asked, tmp_path):
    score(asked, tmp_path / "out")
    before = contents(tmp_path / "out")
    score(asked, tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_resume_leaves_out_what_is_whole(asked, tmp_path, monkeypatch):
    expected = contents_of_undisturbed(asked, tmp_path)
    out = tmp_path / "out"
    failing(monkeypatch, "a-00002")
    with raises_code("unavailable", "resume"):
        score(asked, out)
    monkeypatch.undo()
    whole = list((out / "_parts").glob("*/0*.json"))
    assert whole and not (out / "summary.json").exists() and len(whole) < 4
    assert [p for p in out.glob("*") if p.name.startswith(".")] == []
    called = counted(monkeypatch)
    score(asked, out, resume=True)
    assert contents(out) == expected and len(called) == 4 - len(whole)


def contents_of_undisturbed(asked, tmp_path):
    score(asked, tmp_path / "undisturbed")
    return contents(tmp_path / "undisturbed")


def failing(monkeypatch, stem):
    """The disk is full when a part is written."""
    replace_file = shards.replace_file

    def full(path, overwrite):
        if stem in path:
            raise OSError(28, "No space left on device", path)
        return replace_file(path, overwrite)

    monkeypatch.setattr(shards, "replace_file", full)


def counted(monkeypatch):
    called, call = [], Scorer.__call__

    def counting(self, rows):
        called.append(len(rows))
        return call(self, rows)

    monkeypatch.setattr(Scorer, "__call__", counting)
    return called


def test_files_that_are_added_or_changed_are_scored(asked, tmp_path, monkeypatch):
    out = tmp_path / "out"
    score(asked, out)
    write_csv(asked / "b.csv", pairs(4, seed=5))
    write_csv(asked / "c.csv", pairs(3, seed=6))
    called = counted(monkeypatch)
    summary = score(asked, out, resume=True)
    assert called == [4, 3] or called == [3, 4]
    assert summary["rows"] == 30 == len(read(out))
    os.remove(asked / "c.csv")
    with raises_code("occupied", "overwrite=True"):
        score(asked, out, resume=True)


BAD = {
    "no text": (["007"], "no text"),
    "too many cells": (["007", "x", "y", "z"], "4 cells"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_cost_themselves(case, asked, tmp_path):
    cells, reason = BAD[case]
    rows = [list(row) for row in pairs(23)]
    rows[7] = cells
    write_csv(asked / "a.csv", rows)
    summary = score(asked, tmp_path / "out")
    assert summary["rows"] == 32 and summary["bad_rows"] == 1
    (letter,) = (tmp_path / "out" / "_bad_rows").glob("*")
    bad = json.loads(letter.read_text())
    assert letter.name == "a-00000.jsonl" and reason in bad["reason"]
    assert (bad["source_file"], bad["source_row"], bad["line"]) == ("a.csv", 7, 9)
    assert bad["row"]["id"] == "007"
    assert [row["source_row"] for row in read(tmp_path / "out")].count("7") == 1  # Of b.csv.
    with raises_code("invalid", "max_bad_rows", "a.csv, line 9: ", reason) as raised:
        score(asked, tmp_path / "strict", max_bad_rows=0)
    assert "while running" not in str(raised.value)
    assert not list((tmp_path / "strict").glob("*.csv"))  # Nothing was scored.
    assert score(asked, tmp_path / "lenient", max_bad_rows=1)["bad_rows"] == 1


def test_a_row_that_the_model_cannot_answer(asked, tmp_path, monkeypatch):
    """A poisoned row costs itself, though its batch fails as a whole."""
    call = Predictor.stream

    def poisoned(self, rows, *args):
        rows = list(rows)
        if any(row[0] == "poison" for row in rows):
            raise ValueError("poisoned")
        return call(self, rows, *args)

    monkeypatch.setattr(Predictor, "stream", poisoned)
    rows = [list(row) for row in pairs(23)]
    rows[13][1] = "poison"
    write_csv(asked / "a.csv", rows)
    assert score(asked, tmp_path / "out")["bad_rows"] == 1
    bad = json.loads((tmp_path / "out" / "_bad_rows" / "a-00001.jsonl").read_text())
    assert bad["source_row"] == 13 and "poisoned" in bad["reason"]
    assert len(read(tmp_path / "out")) == 31


def test_a_machine_that_answers_nothing_is_no_bad_row(asked, tmp_path, monkeypatch):
    def broken(self, rows, *args):
        raise RuntimeError("the card is broken")

    monkeypatch.setattr(Predictor, "stream", broken)
    with raises_code("unavailable", "the card is broken"):
        score(asked, tmp_path / "out")
    monkeypatch.undo()
    assert not score(asked, tmp_path / "out", resume=True)["bad_rows"]


def packed(count):
    return gzip.compress(b"id,sentence1,sentence2\n" + b"1,x,y\n" * count)


def parquet(path, text="x"):
    columns = {"id": ["1"] * 40, **{name: [text] * 40 for name in COLUMNS}}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=10)
    return path.read_bytes()


def test_damaged_files_are_named_and_all_else_is_scored(asked, tmp_path):
    whole = {"c.csv.gz": packed(5000), "d.parquet": parquet(tmp_path / "d.parquet")}
    (asked / "c.csv.gz").write_bytes(whole["c.csv.gz"][:-20])
    broken = whole["d.parquet"].replace(b"\x15", b"\xff", 3)
    (asked / "d.parquet").write_bytes(broken)
    summary = score(asked, tmp_path / "out", part_rows=10_000, batch_size=512)
    damaged = {file["file"]: file["reason"] for file in summary["damaged_files"]}
    assert damaged.keys() == whole.keys() and "incomplete" in damaged["c.csv.gz"]
    before = read_packed(tmp_path / "out" / "c-00000.csv.gz")
    assert 1000 < len(before) < 5000 and summary["rows"] == 32 + len(before)
    for name, content in whole.items():
        (asked / name).write_bytes(content)
    summary = score(asked, tmp_path / "out", part_rows=10_000, batch_size=512, resume=True)
    assert summary["rows"] == 32 + 5000 + 40 and not summary["damaged_files"]


def read_packed(path):
    return list(csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines()))


def test_packed_shards_have_equal_bytes(asked, tmp_path):
    (asked / "c.csv.gz").write_bytes(packed(5))
    shards_of = [
        score(asked, tmp_path / name) and tmp_path / name / "c-00000.csv.gz" for name in "xy"
    ]
    assert shards_of[0].read_bytes() == shards_of[1].read_bytes()


def write_lines(path, *values):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".csv"])
def test_texts_of_json_that_are_no_unicode(ending, tmp_path):
    """A half of a pair of surrogates, as in texts that were cut, is answered as by `predict`."""
    pair = dict.fromkeys(COLUMNS, "a")
    write_lines(
        tmp_path / "in" / "a.jsonl",
        pair | {"id": "\ud83d"},
        {"id": "x", **pair, COLUMNS[0]: "b \ud83d"},
    )
    assert not score(tmp_path / "in", tmp_path / "out", ending=ending)["bad_rows"]
    assert (tmp_path / "out" / f"a-00000{ending}").exists()


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_key_of_a_later_object_is_bad_where_it_has_no_column(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(table_rows, "FIRST_ROWS", 1)
    pair = dict.fromkeys(COLUMNS, "a")
    others = [pair | {name: "gold"} for name in ("user", "label", "source_file")]
    write_lines(tmp_path / "in" / "a.jsonl", pair, *others)
    summary = score(tmp_path / "in", tmp_path / "out", ending=ending)
    assert (summary["rows"], summary["bad_rows"]) == (4, 3)


def test_a_later_object_keeps_its_own_values(tmp_path, monkeypatch):
    monkeypatch.setattr(table_rows, "FIRST_ROWS", 1)
    pair, own = dict.fromkeys(COLUMNS, "a"), {"label": "gold", "source_file": 7, "source_row": "x"}
    write_lines(tmp_path / "in" / "a.jsonl", pair, pair | own)
    assert not score(tmp_path / "in", tmp_path / "out")["bad_rows"]
    first, second = rows_in(tmp_path / "out" / "a-00000.jsonl")
    assert (first["source_file"], first["source_row"]) == ("a.jsonl", 0)
    assert second | own == second and second["predicted_label"] == first["label"]
    assert (second["predicted_source_file"], second["predicted_source_row"]) == ("a.jsonl", 1)


@pytest.mark.parametrize("first_rows", [1, 1024])
def test_adapters_of_one_and_of_two_texts(first_rows, tmp_path, monkeypatch):
    """Each row needs the columns of its own adapter only."""
    monkeypatch.setattr(table_rows, "FIRST_ROWS", first_rows)
    one, two = {"task": "sts-b", "text_a": "a"}, {"task": "mrpc", "text_a": "a", "text_b": "b"}
    write_lines(tmp_path / "in" / "a.jsonl", one, two)
    write_lines(tmp_path / "in" / "b.jsonl", one)
    options = {"adapters": (("mrpc", PAIRS), ("sts-b", SCORES)), "adapter_column": "task"}
    columns = {"text_a_column": None, "text_b_column": None}
    summary = score(tmp_path / "in", tmp_path / "out", **options, **columns)
    late = first_rows == 1  # The columns of a.jsonl are those of its first row.
    assert (summary["rows"], summary["bad_rows"]) == (3, late)
    write_lines(tmp_path / "in" / "b.jsonl", {"task": "mrpc", "text": "a"})
    with raises_code("missing", "b.jsonl", "text_a"):
        score(tmp_path / "in", tmp_path / "none", **options, **columns)


def test_lists_in_the_column_of_adapters(tmp_path):
    pair = dict.fromkeys(COLUMNS, "a")
    write_lines(tmp_path / "in" / "a.jsonl", pair | {"task": "mrpc"}, pair | {"task": ["mrpc"]})
    adapters = {"adapters": (PAIRS, ("sts-b", SCORES)), "adapter_column": "task"}
    assert score(tmp_path / "in", tmp_path / "out", **adapters)["bad_rows"] == 1


def test_empty_files_of_objects_are_no_damage(tmp_path):
    write_lines(tmp_path / "in" / "a.jsonl", dict.fromkeys(COLUMNS, "a"))
    write_lines(tmp_path / "in" / "b.jsonl")
    summary = score(tmp_path / "in", tmp_path / "out")
    assert summary["rows"] == 1 and summary["parts"] == 2 and not summary["damaged_files"]


def test_objects_of_files_may_have_other_keys(tmp_path):
    for name, key in (("a.jsonl", "x"), ("b.JSONL", "y"), ("c.JSONL.gz", "z")):
        write_lines(tmp_path / "in" / name, dict.fromkeys(COLUMNS, "a") | {key: 1})
    packed_file = tmp_path / "in" / "c.JSONL.gz"
    packed_file.write_bytes(gzip.compress(packed_file.read_bytes()))
    assert score(tmp_path / "in", tmp_path / "out")["rows"] == 3


def test_texts_become_tables_with_a_header(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("x, y\nz\n")
    none = {"text_a_column": None, "text_b_column": None}
    score(tmp_path / "in", tmp_path / "out", adapters=(SCORES,), ending=".csv", **none)
    assert [row["text"] for row in read(tmp_path / "out")] == ["x, y", "z"]


def test_the_delimiter_stays(tmp_path):
    (tmp_path / "in").mkdir()
    table = b"id;sentence1;sentence2\n1;x, y;z\n"
    (tmp_path / "in" / "a.csv.gz").write_bytes(gzip.compress(table))
    score(tmp_path / "in", tmp_path / "out")
    written = gzip.decompress((tmp_path / "out" / "a-00000.csv.gz").read_bytes())
    assert written.splitlines()[1].startswith(b"1;x, y;z;a.csv.gz;0;")


def test_quoted_cells_keep_their_line_ends(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tsv").write_text('id\tsentence1\tsentence2\n1\t"x\ny"\tz\n')
    assert not score(tmp_path / "in", tmp_path / "out", reading={"quoted": True})["bad_rows"]
    assert '\t"x\ny"\t' in "\t" + (tmp_path / "out" / "a-00000.tsv").read_text()


def test_the_output_may_be_below_the_input(asked):
    for resume in (False, True):
        assert score(asked, asked / "scored", resume=resume)["rows"] == 32


def test_every_format_is_written(asked, tmp_path):
    score(asked / "b.csv", tmp_path / "csv")
    expected = [dict(row) for row in read(tmp_path / "csv")]
    for ending in shards.ENDINGS:
        score(asked / "b.csv", tmp_path / ending, ending=ending)
        rows = rows_in(tmp_path / ending / f"b-00000{ending}")
        assert [{k: str(v) for k, v in row.items()} for row in rows] == expected, ending


def rows_in(path):
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if ".jsonl" in path.name:
        return [json.loads(line) for line in content.splitlines()]
    delimiter = "," if ".csv" in path.name else "\t"
    return list(csv.DictReader(content.decode().splitlines(), delimiter=delimiter))


def test_parquet_keeps_its_types(asked, tmp_path):
    table = pyarrow.table(
        {"id": [1, 2], "when": pyarrow.array([0, 1], pyarrow.date32())}
        | {name: texts(2) for name in COLUMNS}
    )
    pyarrow.parquet.write_table(table, asked / "c.parquet")
    score(asked / "c.parquet", tmp_path / "out")
    written = pyarrow.parquet.read_table(tmp_path / "out" / "c-00000.parquet")
    assert written.schema.field("when").type == pyarrow.date32()
    assert written.column("id").to_pylist() == [1, 2]
    assert written.schema.field("probability_1").type == pyarrow.float64()


def test_bytes_of_parquet_are_texts(tmp_path):
    (tmp_path / "in").mkdir()
    columns = {"sentence1": ["né".encode(), b"\xff"], "sentence2": [b"x", b"y"]}
    arrays = {name: pyarrow.array(v, pyarrow.binary()) for name, v in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(arrays), tmp_path / "in" / "a.parquet")
    assert score(tmp_path / "in", tmp_path / "out")["bad_rows"] == 1
    written = pyarrow.parquet.read_table(tmp_path / "out" / "a-00000.parquet")
    assert written.column("sentence1").to_pylist() == ["né".encode()]  # Its type is kept.
    answered = Predictor(PAIRS, base=BASE)("né", "x")["probabilities"]["1"]
    assert written.column("probability_1").to_pylist() == [pytest.approx(answered, abs=1e-6)]


def test_a_column_names_the_adapter_of_a_row(tmp_path):
    rows = [
        (*row, name) for row, name in zip(pairs(4), ["mrpc", "sts-b", "none", "mrpc"], strict=True)
    ]
    write_csv(tmp_path / "in" / "a.csv", rows, ("id", *COLUMNS, "task"))
    options = {"adapters": (PAIRS, ("sts-b", SCORES)), "adapter_column": "task"}
    summary = score(tmp_path / "in", tmp_path / "out", **options)
    first, second, last = read(tmp_path / "out")
    assert summary["bad_rows"] == 1 and first["score"] == last["score"] == ""
    assert second["label"] == "" and second["score"] and first["label"]


def test_questions(tmp_path):
    write_csv(tmp_path / "in" / "a.csv", pairs(5))
    score(tmp_path / "in", tmp_path / "out", adapters=(SPANS,))
    assert all(row["answer"] in row[COLUMNS[1]] for row in read(tmp_path / "out"))


REFUSED = {
    "another job": ({"part_rows": 5}, "occupied"),
    "a format": ({"ending": ".xml"}, "invalid"),
    "a runner": ({"runner": "NoSuchRunner"}, "unavailable"),
    "a flag": ({"beam_options": ["--no_such_flag=1"]}, "invalid"),
    "workers of another runner": ({"runner": "PortableRunner", "workers": 2}, "conflict"),
    "two adapters": ({"adapters": (PAIRS, SCORES)}, "missing"),
    "no workers": ({"workers": 0}, "invalid"),
    "local paths of Dataflow": ({"runner": "DataflowRunner"}, "unavailable"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_before_anything_starts(case, asked, tmp_path):
    options, code = REFUSED[case]
    score(asked, tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError) as raised:
        score(asked, tmp_path / "out", **options)
    assert raised.value.code == code and contents(tmp_path / "out") == before


def test_a_folder_of_others_is_refused(asked, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with raises_code("occupied"):
        score(asked, tmp_path / "out", overwrite=True)


def test_another_job_is_replaced_as_a_whole(asked, tmp_path):
    out = tmp_path / "out"
    score(asked, out, part_rows=5)
    (out / "notes.txt").write_text("mine")
    score(asked, out, part_rows=10, overwrite=True)
    assert len(read(out)) == 32 and (out / "notes.txt").read_text() == "mine"


def test_tables_of_other_columns_are_refused(asked, tmp_path):
    write_csv(asked / "c.csv", pairs(2), ("other", *COLUMNS))
    with raises_code("mismatch"):
        score(asked, tmp_path / "out")
    write_csv(asked / "c.csv", [row[::-1] for row in pairs(2)], ("id", *COLUMNS)[::-1])
    assert score(asked, tmp_path / "out")["rows"] == 34  # The order may differ.


def test_what_a_cluster_is_sent(asked, tmp_path, monkeypatch):
    """The graph needs nothing that Spark's or Flink's runner lacks, and no file of this machine."""
    sent = []
    monkeypatch.setattr(jobs, "_run", lambda job, files, *rest: sent.append((job, files)))
    with raises_code("unavailable", "summary.json"):  # Nothing has run.
        score(asked, tmp_path / "out")
    pipeline = beam.Pipeline(local_runner(1))
    build(pipeline, *sent[0])
    image = DockerEnvironment.from_container_image("image")
    graph = pipeline.to_runner_api(default_environment=image)
    assert not graph.requirements
    environments = graph.components.environments.values()
    assert {environment.urn for environment in environments} == {"beam:env:docker:v1"}
    assert not [artifact for e in environments for artifact in e.dependencies]
