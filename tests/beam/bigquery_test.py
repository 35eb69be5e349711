"""Tables of BigQuery as input and output of a job, with a client that keeps tables in memory."""

import datetime
import functools
import glob
import json
import pathlib
import re
import sys
import types

import apache_beam as beam
import pyarrow
import pyarrow.parquet
import pytest
from google.api_core.exceptions import Forbidden, NotFound

import adapter_bert_tf as abt
from adapter_bert_tf.beam import bigquery
from adapter_bert_tf.beam.workers import local_runner
from adapter_bert_tf.cli import score
from adapter_bert_tf.predict.predictor import Predictor
from tests.beam.job_test import COLUMNS, counted, pairs
from tests.predict.predictor_test import BASE, PAIRS
from tests.runs import ROOT

SOURCE, TARGET, FORBIDDEN = "example.com:p.rows.mail", "p.rows.scored", "p.rows.secret"


class FakeBigQuery(types.SimpleNamespace):
    """What `google.cloud.bigquery` has, as far as it is used; the jobs work on local files."""

    def __init__(self, tables):
        super().__init__(tables=tables, exports=0, loads=[])
        self.ParquetOptions = types.SimpleNamespace
        self.ExtractJobConfig = self.LoadJobConfig = types.SimpleNamespace
        self.DatasetReference = "{}.{}".format
        self.TableReference = "{}.{}".format

    def Client(self, project):
        self.project = project
        return self

    def get_table(self, name):
        if name == FORBIDDEN:
            raise Forbidden(f"no rights: {name}")
        if name not in self.tables:
            raise NotFound(f"no table: {name}")
        modified = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
        return types.SimpleNamespace(
            name=name, modified=modified, location="EU", table_id=name.rpartition(".")[2]
        )

    def extract_table(self, table, uri, location, job_config):
        assert location == "EU" and job_config.destination_format == "PARQUET"
        self.exports += 1
        pathlib.Path(uri).parent.mkdir(parents=True)
        content = self.tables[table.name]
        for number, rows in enumerate((content[:17], content[17:])):
            pyarrow.parquet.write_table(rows, uri.replace("*", f"{number:012d}"))
        return types.SimpleNamespace(result=lambda: None)

    def load_table_from_uri(self, uri, name, job_config):
        assert job_config.write_disposition == "WRITE_TRUNCATE"
        assert job_config.parquet_options.enable_list_inference
        parts = [pyarrow.parquet.read_table(path) for path in sorted(glob.glob(uri))]
        self.tables[name] = pyarrow.concat_tables(parts)
        rows = self.tables[name].num_rows
        return types.SimpleNamespace(result=lambda: None, output_rows=rows)


@pytest.fixture
def client(monkeypatch, tmp_path):
    """A client with a table of 25 rows, of which one has no text."""
    rows = pairs(25)
    columns = {"id": list(range(25))} | {
        name: [row[place] for row in rows] for place, name in enumerate(COLUMNS, 1)
    }
    columns[COLUMNS[0]][3] = None
    made = FakeBigQuery({SOURCE: pyarrow.table(columns)})
    monkeypatch.setitem(sys.modules, "google.cloud.bigquery", made)
    monkeypatch.setattr(sys.modules["google.cloud"], "bigquery", made, raising=False)
    monkeypatch.setattr(bigquery, "_require_bucket", lambda folder: None)
    return made


def run(temporary, *flags, source=SOURCE, target=TARGET, adapter=PAIRS):
    columns = zip(("text_a_column", "text_b_column"), COLUMNS, strict=True)
    texts = [f"--{flag}={name}" for flag, name in columns]
    words = [f"--adapter_dir={adapter}", f"--base_model={BASE}", "--part_rows=10", *texts, *flags]
    words += [f"--input=bigquery://{source}", f"--temp_location={temporary}"]
    return score.main([*words, f"--output=bigquery://{target}"])


@pytest.mark.long
def test_a_table_is_scored_into_a_table(client, tmp_path, capsys, monkeypatch):
    assert run(tmp_path / "tmp") == 0
    said = capsys.readouterr().out
    assert "25 rows, 1 of them bad, in 3 parts" in said and f": bigquery://{TARGET}  1: " in said
    assert "Bad rows: " in said
    scored, rows = client.tables[TARGET], client.tables[SOURCE].to_pylist()
    assert scored.schema.field("id").type == pyarrow.int64() and scored.num_rows == 24
    rows = {row["id"]: [row[name] for name in COLUMNS] for row in rows if row["id"] != 3}
    answers = Predictor(PAIRS, base=BASE)(list(rows.values()))
    expected = dict(zip(rows, (answer["label"] for answer in answers), strict=True))
    assert {row["id"]: row["label"] for row in scored.to_pylist()} == expected
    called = counted(monkeypatch)
    assert run(tmp_path / "tmp", "--resume") == 0
    assert client.exports == 1 and not called and client.tables[TARGET].equals(scored)


def test_without_a_scored_row_the_table_stays(client, capsys):
    before = client.tables[SOURCE]
    tables = bigquery.Tables([], f"bigquery://{SOURCE}", "gs://bucket/tmp", None)
    tables.load({"rows": 2, "bad_rows": 2})
    assert SOURCE in capsys.readouterr().out and client.tables[SOURCE] is before


def test_what_bigquery_refuses(client, tmp_path, capsys):
    assert run(tmp_path / "tmp", source=FORBIDDEN) == 1
    assert f"BigQuery, {FORBIDDEN}: '403 no rights" in capsys.readouterr().err
    assert run(tmp_path / "tmp", source="p.rows.other") == 1
    assert "BigQuery, p.rows.other: '404 no table" in capsys.readouterr().err
    assert run(tmp_path / "tmp", target=SOURCE) == 1
    assert "--overwrite to replace it" in capsys.readouterr().err
    assert run(tmp_path / "tmp", adapter=tmp_path / "none") == 1
    assert client.exports == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input=bigquery://mail"], "bigquery://PROJECT.DATASET.TABLE. Received: "),
        (["--output=bigquery://p.d.t", "--format=.csv"], "A table is loaded from .parquet"),
        (["--temp_location="], "needs --temp_location"),
        (["--temp_location=/tmp/x"], "--temp_location is a folder gs://. Received: '/tmp/x'"),
        ([], 'pip install "apache-beam[gcp]"'),
    ],
)
def test_what_is_wrong_with_a_table(words, message, capsys, monkeypatch):
    if words:
        monkeypatch.setattr(bigquery, "_import_client", lambda: None)
    else:
        monkeypatch.setitem(sys.modules, "google.cloud.bigquery", None)
    usual = [
        "--adapter_dir=a",
        "--input=bigquery://p.d.t",
        "--output=out",
        "--temp_location=gs://b",
    ]
    assert score.main([*usual, *words]) == 1
    assert message in capsys.readouterr().err


class InMemory(beam.PTransform):
    """A stand-in for `WriteToBigQuery`: appends rows to a file, after a look at their columns."""

    def __init__(self, folder, table, schema, write_disposition):
        super().__init__()
        self._file = f"{folder}/{table.rpartition('.')[2]}.jsonl"
        self._names = {field.split(":")[0] for field in schema.split(",")}
        assert write_disposition == beam.io.BigQueryDisposition.WRITE_TRUNCATE

    def expand(self, rows):
        return rows | beam.Map(self._write)

    def _write(self, row):
        assert set(row) == self._names
        with open(self._file, "a") as file:
            file.write(json.dumps(row) + "\n")


@pytest.mark.long
def test_the_pipeline_of_the_page(tiny_base_folder, tmp_path, monkeypatch):
    model = abt.AdapterModel(abt.load_base(tiny_base_folder))
    model.add_adapter("tickets", ["bad", "good"], abt.AdapterConfig(4), max_seq_length=16)
    model.save_adapter("tickets", tmp_path / "adapter")
    rows = [{"id": i, "body": None if i == 2 else f"the cat {i}"} for i in range(5)]
    monkeypatch.setattr(beam.io, "ReadFromBigQuery", lambda table: beam.Create(rows))
    monkeypatch.setattr(beam.io, "WriteToBigQuery", functools.partial(InMemory, tmp_path))
    own_score = functools.partial(abt.beam.Score, base=tiny_base_folder)
    monkeypatch.setattr(abt.beam, "Score", own_score, raising=False)
    monkeypatch.setattr(beam, "Pipeline", functools.partial(beam.Pipeline, local_runner(1)))
    page = (ROOT / "docs" / "scoring.md").read_text()
    (code,) = [code for code in re.findall(r"```python\n(.*?)```", page, re.S) if "json" in code]
    exec(code.replace("gs://bucket/adapter", str(tmp_path / "adapter")), {"__name__": "page"})

    def written(name):
        lines = (tmp_path / f"{name}.jsonl").read_text().splitlines()
        return sorted(map(json.loads, lines), key=str)

    assert [row["id"] for row in written("scored")] == [0, 1, 3, 4]
    (bad,) = written("bad_rows")
    assert json.loads(bad["row"]) == rows[2] and "body" in bad["reason"]
