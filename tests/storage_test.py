"""Retries of remote operations, and atomic writes."""

import os
import pathlib

import pytest
import tensorflow as tf

from adapter_bert_tf import retry, storage
from tests.refusals import raises_code

TRANSIENT = [tf.errors.AbortedError, tf.errors.UnavailableError, tf.errors.InternalError]


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setenv("ADAPTER_BERT_RETRY_SECONDS", "0.001")


def failing(times, error):
    """Returns an operation that fails so often before it succeeds, and the list of its calls."""
    calls = []

    @retry.retry_remote
    def operation(path):
        calls.append(path)
        if len(calls) <= times:
            raise error(None, None, "All 3 retry attempts failed.\nHTTP 503")
        return "done"

    return operation, calls


@pytest.mark.parametrize("error", TRANSIENT)
def test_transient_errors_are_retried_and_printed(error, capsys):
    operation, calls = failing(3, error)
    assert operation("gs://b/x") == "done" and len(calls) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("gs://b/x: All 3 retry attempts failed. Trying again in ")
    assert lines[2].endswith("(3 of 7).")


@pytest.mark.parametrize(
    ("path", "error", "raised", "calls"),
    [
        ("gs://b/x", tf.errors.AbortedError, OSError, retry.ATTEMPTS),
        ("gs://b/x", tf.errors.NotFoundError, FileNotFoundError, 1),
        ("gs://b/x", tf.errors.AlreadyExistsError, FileExistsError, 1),
        ("gs://b/x", tf.errors.DataLossError, OSError, 1),
        ("/tmp/x", tf.errors.UnavailableError, tf.errors.UnavailableError, 1),
    ],
)
def test_how_often_errors_are_retried(path, error, raised, calls):
    operation, made = failing(99, error)
    with pytest.raises(raised, match="All 3 retry attempts failed"):
        operation(path)
    assert len(made) == calls


def test_denied_access_is_not_retried():
    operation, calls = failing(99, tf.errors.PermissionDeniedError)
    with raises_code("unavailable", "gs://b/x"):
        operation("gs://b/x")
    assert len(calls) == 1


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", b"bytes", None, 7])
def test_invalid_paths(path):
    with raises_code("invalid", "`os.PathLike`"):
        storage.path_of(path)


def test_names_that_are_not_utf8_do_not_exist(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    assert not storage.exists(folder) and not storage.isdir(folder)
    assert storage.exists(tmp_path) and storage.isdir(tmp_path)


def test_local_files_are_those_of_the_operating_system(tmp_path):
    file, missing = str(tmp_path / "a.txt"), str(tmp_path / "no" / "a.txt")
    storage.write_text(file, "four")
    assert storage.stat(file).length == 4
    assert storage.stat(file).mtime_nsec == os.stat(file).st_mtime_ns
    assert storage.listdir(str(tmp_path)) == ["a.txt"]
    assert storage.glob(str(tmp_path / "a*")) == [file]
    assert not storage.isdir(file) and not storage.isdir(f"{file}/below")
    for read in (storage.read_bytes, storage.stat, storage.listdir, storage.remove):
        with pytest.raises(FileNotFoundError):
            read(missing)
    assert not storage.exists(missing) and not storage.isdir(missing)
    storage.remove(file)
    assert not storage.exists(file)


def test_writes_are_atomic(tmp_path):
    path = tmp_path / "new" / "file"
    storage.write_text(str(path), "old ä")
    with pytest.raises(TypeError):
        storage.write_bytes(str(path), None)
    assert storage.read_text(str(path)) == "old ä"
    assert storage.read_bytes(str(path), 3) == b"old"


def test_upload_removes_one_file_first_and_writes_it_last(tmp_path, monkeypatch):
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("a/weights", "config", "zip"):
        storage.write_text(str(source / name), "new")
    for name in ("a/old", "config", "zip"):
        storage.write_text(str(target / name), "old")
    steps = []
    for name in ("copy", "remove"):
        real = getattr(storage, name)
        monkeypatch.setattr(
            storage,
            name,
            lambda *paths, real=real, name=name: (
                steps.append((name, str(pathlib.Path(paths[-1]).relative_to(target)))),
                real(*paths),
            ),
        )
    storage.upload(str(source), str(target), last="config")
    assert steps == [
        ("remove", "config"),
        ("remove", "a/old"),
        ("copy", "a/weights"),
        ("copy", "zip"),
        ("copy", "config"),
    ]


def test_local_files_are_not_copied(tmp_path):
    assert storage.cached("a", "b") == ["a", "b"]
    with storage.local_folder(str(tmp_path)) as folder:
        assert folder == str(tmp_path)
