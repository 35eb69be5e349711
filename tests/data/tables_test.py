"""Files as they come: TSV without quoting, CSV with it, gzip, encodings, folders of texts."""

import gzip

import pytest

from adapter_bert_tf.data.tables.files import find_file, read_table
from adapter_bert_tf.tasks import Columns, Source
from tests.refusals import raises_code

NUMBERED = Columns(0, label=1)


def _cells(folder, content, **source):
    (folder / "t").write_bytes(content)
    header, rows = read_table(Source("t", NUMBERED, **source), str(folder))
    return header, [cells for _, cells in rows]


CSV = {"delimiter": ",", "quoted": True}
FILES = {
    "quotes are text": (b'"a\t1\n b"\t2\n', {}, [['"a', "1"], [' b"', "2"]]),
    "form feeds and separators are text": (
        "a\x0cb\u2028c\t1\n".encode(),
        {},
        [["a\x0cb\u2028c", "1"]],
    ),
    "Windows line ends": (b"a\t1\r\nb\t2\r\n", {}, [["a", "1"], ["b", "2"]]),
    "carriage returns alone": (b"a\t1\rb\t2\r", {}, [["a", "1"], ["b", "2"]]),
    "a carriage return in a line": (b"a\rb\t1\nc\t2\n", {}, [["a\rb", "1"], ["c", "2"]]),
    "quoted, carriage returns alone": (b'"a\rb",1\rc,2\r', CSV, [["a\rb", "1"], ["c", "2"]]),
    "no final line feed": (b"a\t1\nb\t2", {}, [["a", "1"], ["b", "2"]]),
    "byte-order mark": (b"\xef\xbb\xbfa\t1\n", {}, [["a", "1"]]),
    "escapes": (rb"a\nb\tc\\n" + b"\t1\n", {"escaped": True}, [["a\nb\tc\\n", "1"]]),
    "quoted cells hold line ends": (
        b'"a ""b""\nc, d",1\r\nx,2\r\n',
        CSV,
        [['a "b"\nc, d', "1"], ["x", "2"]],
    ),
    "blank CSV lines": (b"a,1\n\nb,2\n", CSV, [["a", "1"], ["b", "2"]]),
    "a blank line is a row of one column": (b"\na\n\nb\n\n", CSV, [["a"], [""], ["b"]]),
    "second encoding": (b"caf\xe9\t1\n", {"encodings": ("utf-8", "latin-1")}, [["café", "1"]]),
}


@pytest.mark.parametrize("case", FILES)
def test_rows(case, tmp_path):
    content, source, expected = FILES[case]
    assert _cells(tmp_path, content, **source)[1] == expected
    (tmp_path / "zipped").mkdir()
    (tmp_path / "zipped" / "t.gz").write_bytes(gzip.compress(content))
    _, rows = read_table(Source("t", NUMBERED, **source), str(tmp_path / "zipped"))
    assert [cells for _, cells in rows] == expected


def test_header_and_line_numbers(tmp_path):
    (tmp_path / "t").write_text('text,label\n"a\nb",1\nc,2\n')
    header, rows = read_table(Source("t", NUMBERED, header=True, **CSV), str(tmp_path))
    assert header == ["text", "label"]
    assert [line for (_, line), _ in rows] == [2, 4]


def test_a_folder_of_texts(tmp_path):
    for label, name, text in (("b", "2", "two"), ("a", "9", "caf\xe9"), ("b", "1", "one")):
        (tmp_path / "tree" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / label / name).write_bytes(text.encode("latin-1"))
    _, rows = read_table(Source("tree/", NUMBERED, encodings=("latin-1",)), str(tmp_path))
    assert [cells for _, cells in rows] == [["café", "a"], ["one", "b"], ["two", "b"]]


BAD = {
    "encoding": (
        b"one\t1\ncaf\xe9\t1\n",
        {},
        "damaged: line 2",
    ),
    "utf-16": ("a\t1\n".encode("utf-16"), {}, "damaged: line 1"),
    "unknown encoding": (b"a\t1\n", {"encodings": ("utf-9",)}, "invalid: 'utf-9'"),
    "open quote": (b'a,1\n"b,2\nc,3\n', CSV, "damaged: line 2"),
    "empty": (b"", {}, "damaged: is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case, tmp_path):
    content, source, message = BAD[case]
    with raises_code(message):
        _cells(tmp_path, content, **source)


def test_a_link_that_leads_nowhere_is_no_missing_file(tmp_path):
    (tmp_path / "t.csv").symlink_to(tmp_path / "moved.csv")
    with raises_code("not_found", "t.csv", "moved.csv"):
        find_file(Source("t.csv", NUMBERED), str(tmp_path))
    (tmp_path / "moved.csv").write_text("a,1\n")
    assert find_file(Source("t.csv", NUMBERED), str(tmp_path)) == str(tmp_path / "t.csv")


def test_a_damaged_gzip_file(tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"a\t1\n" * 1000)[:-20])
    with raises_code("damaged", "t.gz"):
        read_table(Source("t", NUMBERED), str(tmp_path))
