"""Rows are those of `predict`, from any part on; a row that cannot be read costs itself."""

import contextlib
import csv
import gzip
import io

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapter_bert_tf.beam import text_rows
from adapter_bert_tf.beam.rows import cut, find_files, format_of, open_rows, read_part
from adapter_bert_tf.beam.text_rows import LONGEST
from adapter_bert_tf.data.tables.stream import TableFormat, open_table, table_format
from adapter_bert_tf.errors import InputError
from tests.refusals import raises_code


def form_of(path, **reading):
    if str(path).removesuffix(".gz").endswith(".txt"):
        return TableFormat(".txt", str(path).endswith(".gz"), "\t", False, False, "utf-8")
    return table_format(str(path), **reading)


def put(folder, name, content):
    data = content if isinstance(content, bytes) else content.encode()
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def rows_of(path, form):
    with open_rows(str(path), form) as rows:
        layout = rows.layout()
        return [row for _, row in rows.read(layout, layout.start)]


def parts_of(path, num_rows, form):
    (file,) = find_files([str(path)])
    return list(cut(file, form, num_rows))


# Name, content, reading, and the values of each row; a text is what its error names.
FORMS = {
    "csv": ("a.csv", 'id,text\n1,x\n2,"y, ""z""\nw"\n', {}, [["1", "x"], ["2", 'y, "z"\nw']]),
    "tsv": ("a.tsv", 'id\ttext\n1\tx\n2\ty "z\n', {}, [["1", "x"], ["2", 'y "z']]),
    "no last line end": ("a.csv", "id,text\n1,x", {}, [["1", "x"]]),
    "mark, carriage returns": (
        "a.csv",
        "\ufeffid,text\r\n1,é\r\n2,y\r\n",
        {},
        [["1", "é"], ["2", "y"]],
    ),
    "a lone carriage return": (
        "a.csv",
        "id,text\n1,x\r2,y\n3,z\n",
        {},
        [["1", "x"], ["2", "y"], ["3", "z"]],
    ),
    "latin-1": ("a.csv", "a\né\n".encode("latin-1"), {"encoding": "latin-1"}, [["é"]]),
    "blank lines": ("a.csv", "\nid,text\n1,x\n\n2,y\n\n", {}, [["1", "x"], ["2", "y"]]),
    "a blank row": ("a.csv", "text\nx\n\ny\n\n", {}, [["x"], [""], ["y"]]),
    "quoted cells without text": ("a.csv", 'text\nx\n""\n\n""\n\n', {}, [["x"], [""], [""], [""]]),
    "no header": ("a.tsv", "1\tx\n2\ty\n", {"header": False}, [["1", "x"], ["2", "y"]]),
    "objects": ("a.jsonl", '\n{"a": 1}\n{"a": "x", "b": null}\n', {}, [[1], ["x", None]]),
    "texts": ("a.txt", "x, y\n\n z \n", {}, [["x, y"], ["z"]]),
    "a surplus cell": ("a.csv", "text\nx\ny,z\nw\n", {}, [["x"], "2 cells", ["w"]]),
    "bytes": ("a.csv", b"text\nx\n\xff\xfe\ny\n", {}, [["x"], "not utf-8", ["y"]]),
    "bytes in a text": ("a.txt", b"x\n\xff\ny\n", {}, [["x"], "not utf-8", ["y"]]),
    "no object": ("a.jsonl", '[1]\n{"a": 1}\n{"a"\n{"a": 2}\n', {}, ["object", [1], "JSON", [2]]),
    "an open quote": ("a.csv", 'id,text\n1,"x\n2,y\n3,z\n', {}, ["quotes", ["2", "y"], ["3", "z"]]),
    "a quote within": ("a.csv", 'id,text\n1,"x"x\n2,y\n', {}, ["quotes", ["2", "y"]]),
    "a long open quote": (
        "a.csv",
        'id,text\n1,"x\n2,y\n' + "3,z\n" * (LONGEST // 4),
        {},
        ["never closed", ["2", "y"]] + [["3", "z"]] * (LONGEST // 4),
    ),
    "a long line": (
        "a.tsv",
        f"id\ttext\n1\t{'x' * LONGEST}\n2\ty\n",
        {},
        ["more than", ["2", "y"]],
    ),
    "a long object": (
        "a.jsonl",
        f'{{"a": 1}}\n"{"x" * LONGEST}"\n{{"a": 2}}\n',
        {},
        [[1], "more", [2]],
    ),
}


def test_open_quotes_do_not_read_a_file_again(tmp_path):
    """A packed file would be unpacked from its beginning for each of them."""
    places = []

    class File(io.BytesIO):
        def seek(self, place, whence=0):
            places.append(place)
            return super().seek(place, whence)

    content = b"id,text\n" + (b'1,"x\n' + b"2,y\n" * 50) * 20
    path = str(put(tmp_path, "a.csv", content))
    rows = text_rows.TextRows(path, table_format(path), File(content))
    layout = rows.layout()
    read = [row for _, row in rows.read(layout, layout.start)]
    assert len(read) == 20 * 51 and sum(row.error is not None for row in read) == 20
    assert len(places) <= 3


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("case", FORMS)
def test_rows(case, packed, tmp_path):
    name, content, reading, expected = FORMS[case]
    path = put(tmp_path, name + packed, content)
    form = form_of(path, **reading)
    rows = rows_of(path, form)
    assert len(rows) == len(expected)
    for row, values in zip(rows, expected, strict=True):
        if isinstance(values, str):
            assert values in row.error
        else:
            assert row.error is None and list(row.values.values()) == values
    for num_rows in (1, 2, 1000):
        parts = parts_of(path, num_rows, form) if len(rows) < 10 else []
        assert [row for part, _ in parts for row in read_part(part)] == (rows if parts else [])
        assert [row for _, own in parts for row in own] == (rows if parts else [])
        assert [part.first for part, _ in parts] == [i * num_rows for i in range(len(parts))]


CELL = st.text(st.sampled_from('ab é\n\r",\t'), max_size=6)


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    width=st.integers(1, 2),
    rows=st.lists(st.lists(CELL, min_size=2, max_size=2), max_size=8),
    ends=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 5),
)
def test_tables_are_read_as_predict_reads_them(tmp_path, width, rows, ends, size):
    file = io.StringIO(newline="")
    cells = [row[:width] for row in (["id", "text"], *rows)]
    csv.writer(file, lineterminator=ends, quoting=csv.QUOTE_ALL).writerows(cells)
    path = put(tmp_path, "a.csv", file.getvalue())
    form = form_of(path)
    with open_table(str(path), form) as table:
        expected = [row.values for row in table]
    assert [list(values.values()) for values in expected] == cells[1:]
    assert [row.values for row in rows_of(path, form)] == expected
    parts = [part for part, _ in parts_of(path, size, form)]
    assert [row.values for part in parts for row in read_part(part)] == expected


OF_TAGGERS = {  # Content of a .txt file: whether a tagger is given texts.
    "words": ("Ada\nmet\n\nthe\ndog\n", False),
    "words and tags, packed": ("Ada B-PER\nmet O\n\nthe O\ndog O\n", False),
    "texts": ("Ada met the dog.\n\nIt sat.\n\nShe left.\n", True),
    "words as texts": ("Ada\nmet\nthe\ndog\n", True),
    "nothing": ("", True),
}


@pytest.mark.parametrize("case", OF_TAGGERS)
def test_words_are_not_texts(case, tmp_path):
    content, are_texts = OF_TAGGERS[case]
    path = put(tmp_path, "a.txt.gz" if "packed" in case else "a.txt", content)
    for head in ("classification", "tags"):
        config = {"head": head, "regression": False}
        if are_texts or head != "tags":
            assert format_of(str(path), config, {}) == form_of(path)
            continue
        with raises_code("unsupported", "`predict`"):
            format_of(str(path), config, {})


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"id": list(range(10)), "text": [f"t{i}" for i in range(10)]})
    pyarrow.parquet.write_table(table, path, row_group_size=3)
    form = form_of(path)
    rows = rows_of(path, form)
    assert [row.values for row in rows] == table.to_pylist()
    for size in (1, 4, 7):
        parts = [part for part, _ in parts_of(path, size, form)]
        assert [row for part in parts for row in read_part(part)] == rows


DAMAGED = {
    "packed, cut off": ("a.csv.gz", gzip.compress(b"text\n" + b"x\n" * 10_000)[:-30], "damaged"),
    "not packed": ("a.jsonl.gz", b'{"a": 1}\n', "damaged"),
    "no Parquet": ("a.parquet", b"PAR1", "damaged"),
    "nothing": ("a.csv", b"", "damaged"),
    "nothing, packed": ("a.tsv.gz", gzip.compress(b""), "damaged"),
    "two columns of one name": ("a.csv", b"a,a\n1,2\n", "invalid"),
    "UTF-16": ("a.csv", "a\nb\n".encode("utf-16"), "damaged"),
    "carriage returns alone": ("a.csv", b"a,b\r1,2\r", "unsupported"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files(case, tmp_path):
    name, content, code = DAMAGED[case]
    path = tmp_path / name
    path.write_bytes(content)
    with raises_code(code):
        rows_of(path, form_of(path))


def test_an_encoding_without_line_feeds_of_one_byte(tmp_path):
    path = put(tmp_path, "a.csv", "a\nb\n".encode("utf-16"))
    with raises_code("unsupported"):
        rows_of(path, form_of(path, encoding="utf-16"))


def test_files_are_named_below_the_folder_without_wildcards(tmp_path):
    for name in ("a/p.csv", "b/p.csv", "b/q.txt.gz", "b/_parts/x.csv", "b/.h.csv", "b/n.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")

    def names(*paths):
        return [file.name for file in find_files([f"{tmp_path}/{path}" for path in paths])]

    assert names("*/p.csv") == ["a/p.csv", "b/p.csv"]
    assert names("b", "b/*.csv", "b/p.csv") == ["p.csv", "q.txt.gz"]
    assert names("b/p.csv") == ["p.csv"]
    with raises_code("not_found"):
        names("c/*.csv")
    with raises_code("not_found"):
        names("c.csv")
    with raises_code("unsupported"):
        names("b/n.md")
    with raises_code("unsupported"):  # Both would be written to `p-00000.csv`.
        names("a/p.csv", "b/p.csv")
    for name in ("d/p.csv", "d/p.d.csv", "d/p.tsv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\n")
    with raises_code("unsupported"):  # Though another name is between them.
        names("d")


def test_a_pattern_may_begin_with_a_wildcard(tmp_path, monkeypatch):
    for name in ("x1/p.csv", "x2/p.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("text\n")
    monkeypatch.chdir(tmp_path)
    for pattern in ("x*/p.csv", "./x*/p.csv", f"{tmp_path}/x*/p.csv"):
        assert [file.name for file in find_files([pattern])] == ["x1/p.csv", "x2/p.csv"]


def test_a_record_is_read_in_the_memory_of_one_row(tmp_path, monkeypatch):
    """A quote that is never closed does not take the rest of the file."""
    monkeypatch.setattr(text_rows, "LONGEST", 100)
    path = put(tmp_path, "a.csv", 'id,text\n1,"x\n' + "".join(f"{i},y\n" for i in range(2, 99)))
    rows = rows_of(path, form_of(path))
    assert rows[0].error and [row.values["id"] for row in rows[1:]] == [
        str(i) for i in range(2, 99)
    ]
    with contextlib.suppress(InputError):
        read_part(parts_of(path, 10, form_of(path))[3][0])
