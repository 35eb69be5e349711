"""Tables read in blocks and from several files: the rows of the file that holds all."""

import csv
import dataclasses
import gzip
import io
import json

import pytest

from adapter_bert_tf.data.examples import read_source
from adapter_bert_tf.data.file_sets import find_files
from adapter_bert_tf.data.tables import blocks
from adapter_bert_tf.data.tables.blocks import read_blocks, require_one_layout, unpacked_size
from adapter_bert_tf.data.tables.files import read_table
from adapter_bert_tf.data.tables.malformed_rows import RowFindings
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks import own_task

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "ROWS", 3)


def source_of(folder, content, extension="csv", **options):
    name = f"train.{extension.removesuffix('.gz')}"
    (folder / f"train.{extension}").write_bytes(content)
    task = own_task("a", label="b", extension=name.partition(".")[2], **options)
    return task.layouts[0]["train"]


def in_blocks(source, folder):
    findings, header, rows = RowFindings(source.file), None, []
    for block in read_blocks(source, str(folder), findings):
        header = block.header
        rows += block.rows
        assert 0 <= block.share <= 1
    return header, rows


TABLES = {
    "quoted": ("csv", 'a,b\nx,1\n"y\nz",2\n\n\nw,3\n\n'),
    "packed": ("csv.gz", "a,b\n" + "x,1\n" * 10),
    "plain, a blank line": ("tsv", "a\tb\nx\t1\n\ny\t2\nz\t3\n\n\n"),
    "a mark, and returns": ("csv", '\ufeffa,b\r\nx,1\r\n"q\r\nr",2\r\n'),
    "blank lines first": ("csv", "\n\na,b\nx,1\n"),
    "only a header": ("csv", "a,b\n"),
    "objects": ("jsonl", '{"a":"x","b":1}\n\n{"b":[1,2],"a":"q"}\n{"a":"x","b":null}\n' * 3),
    "long and short rows": ("tsv", "a\tb\nx\nx\ty\tz\n"),
}


@pytest.mark.parametrize("case", TABLES)
def test_blocks_have_the_rows_of_the_whole_table(case, tmp_path):
    extension, text = TABLES[case]
    content = text.encode()
    source = source_of(
        tmp_path, gzip.compress(content) if extension.endswith("gz") else content, extension
    )
    assert in_blocks(source, tmp_path) == read_table(source, str(tmp_path))


def test_utf_16_is_read_in_blocks(tmp_path):
    source = source_of(tmp_path, "a\tb\nü\t1\n".encode("utf-16"), "tsv", encoding="utf-16")
    assert in_blocks(source, tmp_path)[1][0][1] == ["ü", "1"]


DAMAGED = {
    "empty": ("csv", b""),
    "an open quote": ("csv", b'a,b\nx,"1\n'),
    "other bytes": ("csv", b"a,b\nx,\xff\n"),
    "half a gzip": ("csv.gz", gzip.compress(b"a,b\n" + b"x,1\n" * 999)[:-9]),
    "no objects": ("jsonl", b"[1]\n[2]\n"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused_in_both_ways(case, tmp_path):
    source = source_of(tmp_path, DAMAGED[case][1], DAMAGED[case][0])
    for read in (read_table, in_blocks):
        with pytest.raises(InputError, match="train"):
            read(source, str(tmp_path))


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "LONGEST", 50)
    source = source_of(tmp_path, b'a,b\nx,1\n"' + b"y,1\n" * 100)
    with pytest.raises(InputError, match="more than 50 characters, as if a quotation mark"):
        in_blocks(source, tmp_path)


ROWS = [("one", "x"), ("two, \u00fc", "y"), ("three", "x"), ("four", "y"), ("five", "x")]


def csv_bytes(rows):
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("a", "b"), *rows])
    return text.getvalue().encode()


def json_bytes(rows):
    return "".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in rows).encode()


def parquet_bytes(rows):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    columns = dict(zip(("a", "b"), map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def files_of(folder, form, extension):
    """A source of two files in a folder."""
    folder.mkdir()
    paths = []
    for name, rows in (("1", ROWS[:4]), ("2", ROWS[4:])):
        content = form(rows)
        path = folder / f"part-{name}.{extension}"
        path.write_bytes(gzip.compress(content) if extension.endswith(".gz") else content)
        paths.append(str(path))
    task = own_task("a", label="b", extension=extension.removesuffix(".gz"))
    source = task.layouts[0]["train"]
    return task, with_files(source, f"{folder}/part-*", paths)


def with_files(source, name, paths):
    return dataclasses.replace(source, file=name, files=tuple(paths))


FORMS = {
    "csv": csv_bytes,
    "csv.gz": csv_bytes,
    "jsonl": json_bytes,
    "jsonl.gz": json_bytes,
    "parquet": parquet_bytes,
}


@pytest.mark.parametrize("extension", FORMS)
def test_files_of_every_format_hold_the_rows_of_one_table(extension, tmp_path):
    task, source = files_of(tmp_path / "data", FORMS[extension], extension)
    examples = read_source(task, source, "")
    assert list(zip(examples.text_a, examples.labels, strict=True)) == ROWS
    assert [path[-len(extension) - 2] for path, _ in examples.places] == list("11112")
    _, rows = in_blocks(source, "")
    assert [tuple(cells) for _, cells in rows] == ROWS


MIXED = {
    "other names": (csv_bytes(ROWS), csv_bytes(ROWS).replace(b"a,b", b"a,c"), "csv", "'a', 'c'"),
    "another order": (csv_bytes(ROWS), csv_bytes(ROWS).replace(b"a,b", b"b,a"), "csv", "'b', 'a'"),
    "other keys": (json_bytes(ROWS), b'{"text": "x", "b": "y"}\n', "jsonl", "part-2.jsonl has"),
}


@pytest.mark.parametrize("case", MIXED)
def test_files_of_different_layouts_are_refused_at_once(case, tmp_path):
    first, second, extension, message = MIXED[case]
    paths = [tmp_path / f"part-{number}.{extension}" for number in (1, 2)]
    for path, content in zip(paths, (first, second), strict=True):
        path.write_bytes(content)
    source = own_task("a", label="b", extension=extension).layouts[0]["train"]
    source = with_files(source, "part-*", map(str, paths))
    readers = (require_one_layout, lambda s: in_blocks(s, ""), lambda s: read_source(None, s, ""))
    for read in readers:
        with pytest.raises(InputError, match=message):
            read(source)


def test_other_columns_of_parquet_are_refused(tmp_path):
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    paths[0].write_bytes(parquet_bytes(ROWS))
    paths[1].write_bytes(parquet_bytes([("x", 1)]))
    source = own_task("a", label="b", extension="parquet").layouts[0]["train"]
    with pytest.raises(InputError, match="b: int64"):
        require_one_layout(with_files(source, "*", map(str, paths)))


def test_mixed_formats_are_refused(tmp_path):
    (tmp_path / "1.csv").write_bytes(csv_bytes(ROWS))
    (tmp_path / "2.jsonl").write_bytes(json_bytes(ROWS))
    source = own_task("a", label="b", extension="csv").layouts[0]["train"]
    paths = find_files([str(tmp_path)], (".csv", ".jsonl"))
    with pytest.raises(InputError, match=r"\.csv and \.jsonl files"):
        require_one_layout(with_files(source, str(tmp_path), paths))


def test_packed_files_count_four_times(tmp_path):
    source = source_of(tmp_path, csv_bytes(ROWS))
    size = len(csv_bytes(ROWS))
    assert unpacked_size(source, str(tmp_path)) == size
    (tmp_path / "train.csv").rename(tmp_path / "train.csv.gz")
    assert unpacked_size(source, str(tmp_path)) == 4 * size
