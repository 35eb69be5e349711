"""A table is read as the adapter's was: header, delimiter, quotes, encoding; the user overrides."""

import json
import pathlib

import pytest

from adapter_bert_tf.cli.predict import main
from adapter_bert_tf.predict.columns import reading_options
from adapter_bert_tf.store import load_adapter, save_adapter

BEFORE = pathlib.Path(__file__).parent.parent / "golden" / "written_before"
NUMBERED = {"text_a_column": "0", "text_b_column": "1", "label_column": "2", "header": False}
FORMAT = {"header": False, "delimiter": ";", "quoted": True, "encoding": "latin-1"}


def merged(table, path="q.csv", **given):
    return reading_options({"table": table}, path, given)


MERGED = {
    "nothing recorded": ({}, {}, {}),
    "an adapter of an earlier version": (NUMBERED, {}, {"header": False}),
    "all recorded": (FORMAT, {}, FORMAT),
    "None is not given": (FORMAT, {"delimiter": None, "header": None}, FORMAT),
    "the user's win": (FORMAT, {"delimiter": ",", "header": True},
                       FORMAT | {"delimiter": ",", "header": True}),
    "others pass": (NUMBERED, {"overwrite": True}, {"header": False, "overwrite": True}),
    "columns are chosen by the header": (NUMBERED, {"text_a_column": "b"}, {"header": False}),
}  # fmt: skip


@pytest.mark.parametrize("case", MERGED)
def test_options(case):
    table, given, expected = MERGED[case]
    assert merged(table, **given) == expected


def test_objects_have_no_header_and_no_delimiter():
    assert merged(FORMAT, "q.jsonl") == merged(FORMAT, "q.JSONL.gz") == {}


SAID = {
    "the same": ({"header": False, "text_a_column": 0}, ()),
    "others": ({"header": True, "text_a_column": "b"}, ("header=True", "text_a_column='b'")),
}


@pytest.mark.parametrize("case", SAID)
def test_what_the_user_overrides_is_said(case, caplog):
    given, names = SAID[case]
    merged(NUMBERED, **given)
    assert bool(caplog.text) == bool(names)
    assert all(name in caplog.text for name in names)


@pytest.mark.parametrize(
    ("content", "given", "encoding"),
    [
        ("a;é\n".encode(), {}, "utf-8"),  # Latin-1 would read these bytes as other letters.
        ("a;é\n".encode("latin-1"), {}, "latin-1"),
        (b"a;b\n", {}, "latin-1"),
        ("a;é\n".encode(), {"encoding": "latin-1"}, "latin-1"),
    ],
)
def test_a_file_in_utf8_is_read_so(content, given, encoding, tmp_path, caplog):
    (tmp_path / "q.csv").write_bytes(content)
    assert merged(FORMAT, str(tmp_path / "q.csv"), **given)["encoding"] == encoding
    assert ("UTF-8" in caplog.text) == (encoding == "utf-8")


SHOWN = {
    "as recorded": ("a.csv", "a;b\n", {}, ";"),
    "in one column": ("a.csv", "a\n", {}, ";"),
    "commas": ("a.csv", "a,b\n1,2\n", {}, ","),
    "tabs": ("a.tsv", "a\tb\n1\t2\n", {}, "\t"),
    "commas, but the user says others": ("a.csv", "a,b\n1,2\n", {"delimiter": ";"}, ";"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_the_delimiter_is_the_one_that_the_file_shows(case, tmp_path, caplog):
    name, content, given, delimiter = SHOWN[case]
    (tmp_path / name).write_text(content)
    recorded = {"text_a_column": "a", "header": True, "delimiter": ";"}
    assert merged(recorded, str(tmp_path / name), **given)["delimiter"] == delimiter
    assert ("(delimiter)" in caplog.text) == (delimiter != ";")
    assert merged(recorded, str(tmp_path / "none.csv"))["delimiter"] == ";"


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    """Of a table without a header, with semicolons and quotes, in latin-1."""
    saved = load_adapter(BEFORE / "adapters" / "houlsby")
    folder = tmp_path_factory.mktemp("adapters") / "own"
    config = saved.config | {"task": "tsv", "table": NUMBERED | FORMAT}
    save_adapter(folder, config, saved.weights)
    return folder


ROWS = {"as trained": ([], ";", 2), "commas": (["--delimiter=,"], ",", 2)}
ROWS |= {"a header": (["--header", "--text_a_column=a", "--text_b_column=b"], ";", 1)}


@pytest.mark.parametrize("case", ROWS)
def test_predict_reads_as_the_adapter_was_trained(case, adapter, tmp_path):
    more, delimiter, count = ROWS[case]
    lines = [delimiter.join(row) for row in (("a", "b"), ('"a ""café"""', "the cat"))]
    (tmp_path / "q.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    words = [f"--adapter_dir={adapter}", f"--base_model={BEFORE / 'base'}"]
    words += [f"--predict_file={tmp_path / 'q.csv'}", f"--output={tmp_path / 'out.jsonl'}"]
    assert main([*words, *more]) == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(rows) == count
    assert list(rows[-1].values())[:2] == ['a "café"', "the cat"]
