"""Patience with a service that stumbles, and files that are there whole or not at all."""

import os
import pathlib

import pytest
import tensorflow as tf

from adapter_bert_tf import retry, storage
from adapter_bert_tf.errors import InputError

NOW_AND_THEN = [tf.errors.AbortedError, tf.errors.UnavailableError, tf.errors.InternalError]


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setenv("ADAPTER_BERT_RETRY_SECONDS", "0.001")


def failing(times, error):
    """An operation that fails so often before it passes, and the list of its calls."""
    calls = []

    @storage.retried
    def operation(path):
        calls.append(path)
        if len(calls) <= times:
            raise error(None, None, "All 3 retry attempts failed.\nHTTP 503")
        return "done"

    return operation, calls


@pytest.mark.parametrize("error", NOW_AND_THEN)
def test_what_fails_for_now_is_tried_again_and_said(error, capsys):
    operation, calls = failing(3, error)
    assert operation("gs://b/x") == "done" and len(calls) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("gs://b/x: All 3 retry attempts failed. Trying again in ")
    assert lines[2].endswith("(3 of 7).")


@pytest.mark.parametrize(
    ("path", "error", "calls"),
    [
        ("gs://b/x", tf.errors.AbortedError, retry.ATTEMPTS),
        ("gs://b/x", tf.errors.NotFoundError, 1),
        ("/tmp/x", tf.errors.UnavailableError, 1),
    ],
)
def test_patience_has_an_end(path, error, calls):
    operation, made = failing(99, error)
    with pytest.raises(error):
        operation(path)
    assert len(made) == calls


def test_denied_access_is_said_at_once_with_the_fix():
    operation, calls = failing(99, tf.errors.PermissionDeniedError)
    with pytest.raises(InputError, match=r"gs://b/x: access denied.*Storage Object Admin"):
        operation("gs://b/x")
    assert len(calls) == 1


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", b"bytes", None, 7])
def test_what_is_no_path_is_said(path):
    with pytest.raises(InputError, match=r"named by text or by a path\. Received: "):
        storage.path_of(path)


def test_what_no_file_can_be_called_is_not_there(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    assert not storage.exists(folder) and not storage.isdir(folder)
    assert storage.exists(tmp_path) and storage.isdir(tmp_path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "file"
    storage.write_text(str(path), "old ä")
    with pytest.raises(TypeError):
        storage.write_bytes(str(path), None)
    assert storage.read_text(str(path)) == "old ä"
    assert storage.read_bytes(str(path), 3) == b"old"


def test_a_folder_without_the_last_file_is_never_taken_for_whole(tmp_path, monkeypatch):
    """The file that counts goes first and comes last, whatever the names."""
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
