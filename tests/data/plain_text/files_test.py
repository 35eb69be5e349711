"""Text files: which there are, their texts, and what is refused."""

import gzip
import os

import pytest

from adapter_bert_tf.data import file_sets
from adapter_bert_tf.data.plain_text import files
from tests.refusals import raises_code


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "b.txt").write_text("b\n")
    (tmp_path / "below" / "a.txt.gz").write_bytes(gzip.compress(b"packed\ntexts"))
    (tmp_path / "notes.md").write_text("no text of it\n")
    (tmp_path / ".hidden.txt").write_text("hidden\n")
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("{0}", ["b.txt", "below/a.txt.gz"]),
        ("{0}/notes.md,{0}/b.txt", ["notes.md", "b.txt"]),
        ("{0}/*.txt , {0}/b.txt,", ["b.txt"]),
        ("{0}/b*,{0}", ["b.txt", "below/a.txt.gz"]),
    ],
)
def test_paths_stand_for_files(folder, paths, expected):
    found = files.find_files(file_sets.split_paths(paths.format(folder)))
    assert found == [str(folder / name) for name in expected]


@pytest.mark.parametrize(
    ("path", "fixed"),
    [("a/b.txt", "a/b.txt"), ("a/b*/c.txt", "a"), ("*.gz", "."), ("gs://b/c/x?.txt", "gs://b/c")],
)
def test_the_fixed_part_of_a_pattern(path, fixed):
    assert file_sets.fixed_part(path) == fixed


def test_a_file_whose_name_has_a_wildcard_is_itself(tmp_path):
    path = tmp_path / "a[1].txt"
    path.write_text("x")
    assert files.find_files([str(path)]) == [str(path)]
    assert file_sets.fixed_part(str(path)) == str(path)


@pytest.mark.parametrize(
    ("path", "named"), [("none.txt", "none.txt"), ("n*.txt", "n*.txt"), ("empty", "empty")]
)
def test_paths_without_files_are_refused(folder, path, named):
    (folder / "empty").mkdir()
    with raises_code("not_found", named):
        files.find_files([str(folder / path)])


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    with raises_code("unsupported", "pipe.txt"):
        files.find_files([str(tmp_path / "pipe.txt")])
    with raises_code("not_found"):
        files.find_files([str(tmp_path / "*.txt")])


CONTENT = "\ufeff one \r\ntwo\n\n \n  three\tfour\nfive"


@pytest.mark.parametrize("part", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_texts_are_lines_or_paragraphs(tmp_path, monkeypatch, part, ending):
    monkeypatch.setattr(files, "PART", part)
    path = tmp_path / f"a.txt{ending}"
    content = CONTENT.encode()
    path.write_bytes(gzip.compress(content) if ending else content)
    lines = [text.decode() for text in files.read_texts([str(path)], "line")]
    assert lines == ["one", "two", "three\tfour", "five"]
    paragraphs = [text.decode() for text in files.read_texts([str(path)], "paragraph")]
    assert paragraphs == ["one two", "three\tfour five"]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("binary", b"fine\nP\x00\x01", "line 2"),
        ("latin-1", b"fine\nfine\ncaf\xe9\n", "line 3"),
        ("endless", b"short\n" + b"a" * 200, "line 2"),
        ("endless and binary", b"a" * 90 + b"\xff" + b"b" * 200, "line 1"),
        ("empty", b"", "no text"),
        ("blank", b" \n\r\n\t\n", "no text"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, monkeypatch, name, content, line):
    monkeypatch.setattr(files, "LONGEST_TEXT", 100)
    monkeypatch.setattr(files, "PART", 64)
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    for unit in ("line", "paragraph"):
        with raises_code("damaged", str(path), line):
            list(files.read_texts([str(path)], unit))


def test_a_paragraph_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_TEXT", 100)
    path = tmp_path / "a.txt"
    path.write_text("\n" + "twenty letters in it\n" * 6)
    assert len(list(files.read_texts([str(path)], "line"))) == 6
    with raises_code("damaged", "line 6"):
        list(files.read_texts([str(path)], "paragraph"))


def test_a_cut_gz_is_refused(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n" * 100)[:-9])
    with raises_code("damaged", str(path)):
        list(files.read_texts([str(path)]))


def test_the_digest_is_that_of_the_content(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.txt"]
    for path, text in zip(paths, ("x", "y", "x"), strict=True):
        path.write_text(text)
    a, b, c = map(str, paths)
    assert file_sets.digest([a, b]) == file_sets.digest([c, b]) != file_sets.digest([b, a])
    assert file_sets.digest([a, b]) != file_sets.digest([a])
