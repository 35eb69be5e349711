"""Where a SavedModel may be written, and how one of ours is known."""

import hashlib
import json
import os
import pathlib
import re
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.serving_texts import INPUTS
from adapter_bert_tf.sanitize import parse_json
from adapter_bert_tf.store.folders import require_outside_fusions, require_place

MODEL = "saved_model.pb"  # Without it a folder is no SavedModel.
MARKER = "adapter_bert_tf.json"
RUN, EXPORT = "run.json", "saved_model"  # What a run says of itself, and in it of its SavedModel.
LARGEST_MARKER, LARGEST_MODEL, LARGEST_RECORD = 1 << 20, 1 << 30, 1 << 24
FOLDERS = {"assets", "variables"}  # TensorFlow makes them, even if nothing is in them.
# Before there was a marker all SavedModels of ours had these files and no others,
FILES = re.compile(r"saved_model\.pb|fingerprint\.pb|variables/variables\.(index|data-\S{14})")
# and signatures with these inputs, and for each of them these outputs.
IDS = frozenset(INPUTS)
CLASSES = {"label", "probabilities", "logits", "classes"}
TEXTS = {
    frozenset({"text_a"}): (CLASSES, {"score"}),
    frozenset({"text_a", "text_b"}): (CLASSES, {"score"}),
    frozenset({"question", "context"}): ({"answer", "score", "start", "end"},),
    frozenset({"task", "text_a", "text_b"}): (CLASSES | {"score"},),
}
NO_SIGNATURE = "__saved_model_init_op"


def mark(folder: str) -> None:
    """Lists the files of a SavedModel, in a local folder, in one more: so it is known as ours."""
    _write_marker(folder, _walk(folder)[0], _digest(folder))


def state_of(folder: str) -> dict[str, int | str]:
    """What tells one SavedModel of ours from another: the bytes of its files, the model's digest.

    Its weights are too large to be read for that. Empty, if there is none that is whole.
    """
    marker = _read_marker(folder)
    if marker is None or not storage.exists(os.path.join(folder, MODEL)) or not _is_file(folder):
        return {}
    listed = marker["files"]
    if not set(listed) <= set(_walk(folder)[0]):
        return {}
    sizes = {name: storage.stat(os.path.join(folder, name)).length for name in listed}
    return {**sizes, MODEL: _digest(folder)}


def signatures_of(folder: str) -> list[str]:
    """Names of the signatures of the SavedModel in a folder; none if there is none."""
    path = os.path.join(folder, MODEL)
    model = _parsed(folder) if storage.exists(path) and _is_file(folder) else None
    found = model.meta_graphs[0].signature_def if model and model.meta_graphs else ()
    return sorted(name for name in found if name != NO_SIGNATURE)


def require_export_place(folder: str) -> None:
    """A SavedModel may be written where nothing is, or one of ours. Raises `InputError`."""
    require_place(folder)
    require_outside_fusions(folder)
    if not storage.exists(folder):
        return
    if not storage.isdir(folder):
        raise InputError(f"{folder!r} is a file and will not be replaced. Choose another folder.")
    files, folders = _walk(folder)
    marker = _read_marker(folder)
    if not (_is_marked(folder, marker, files) if marker else _is_older(folder, files)):
        raise InputError(
            f"{folder!r} is no SavedModel that this package wrote, and will not be replaced. It "
            f"holds {sorted([*files, *folders])[:5] or 'nothing'}. Choose another folder, or "
            "remove it first."
        )
    other = _foreign(files, folders, marker["files"] if marker else _of_older(files))
    if other:
        raise InputError(
            f"{folder!r} holds {', '.join(map(repr, other[:5]))} besides a SavedModel, and will "
            "not be replaced. Move that elsewhere, or choose another folder."
        )


def require_no_result(folder: str, own: str | None = None) -> None:
    """A SavedModel that a run has left beside its `run.json` is that run's to replace.

    Args:
      folder: where a SavedModel is to be written.
      own: the folder of the run that asks, if one does.

    Raises:
      InputError: for one of another run.
    """
    above = os.path.dirname(folder.rstrip("/")) or "."
    record = os.path.join(above, RUN)
    if (own and storage.real(own) == storage.real(above)) or not storage.exists(record):
        return
    there = state_of(folder)
    if there and _noted(record) == there:
        raise InputError(
            f"{folder!r} is the SavedModel of the run in {above!r}, and will not be replaced. "
            "Choose another folder, or remove it first."
        )


def _noted(record: str) -> Any:
    """What a `run.json` says of the run's SavedModel; None if it says nothing."""
    try:
        content = parse_json(storage.read_bytes(record, LARGEST_RECORD))
    except (ValueError, tf.errors.OpError):
        return None
    results = content.get("results") if isinstance(content, dict) else None
    return results.get(EXPORT) if isinstance(results, dict) else None


def mark_older(folder: str) -> None:
    """Gives a SavedModel of ours that has no marker one, which lists what is there.

    In a store it is then known as ours if its replacement is cut short.
    """
    if storage.exists(os.path.join(folder, MODEL)) and not _read_marker(folder):
        _write_marker(folder, _walk(folder)[0], _digest(folder))


def _write_marker(folder: str, files: list[str], digest: str) -> None:
    values = {"files": sorted({*files, MARKER}), "saved_model_sha256": digest}
    storage.write_text(os.path.join(folder, MARKER), json.dumps(values, indent=2) + "\n")


def _walk(folder: str) -> tuple[list[str], list[str]]:
    """Paths, from a folder, of the files and of the folders in it; a link counts as a file."""
    if not storage.is_remote(folder):
        found = sorted(pathlib.Path(folder).rglob("*"))
        kept = [(path, path.is_dir() and not path.is_symlink()) for path in found]
        names = [(path.relative_to(folder).as_posix(), is_folder) for path, is_folder in kept]
        return [n for n, is_folder in names if not is_folder], [n for n, f in names if f]
    files = [
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in storage.walk(folder)
        for name in names
    ]
    return files, []


def _foreign(files: list[str], folders: list[str], listed: list[str]) -> list[str]:
    """What is in a folder besides what its marker lists."""
    above = FOLDERS | {os.path.dirname(name) for name in listed}
    return [name for name in files if name not in listed] + [n for n in folders if n not in above]


def _read_marker(folder: str) -> dict[str, Any] | None:
    """What the marker says; None if there is none that can be read."""
    path = os.path.join(folder, MARKER)
    if not storage.exists(path) or storage.isdir(path):
        return None
    try:
        marker = parse_json(storage.read_bytes(path, LARGEST_MARKER))
    except ValueError:
        return None
    files = marker.get("files") if isinstance(marker, dict) else None
    known = isinstance(files, list) and all(isinstance(name, str) for name in files)
    return marker if known else None


def _is_marked(folder: str, marker: dict[str, Any], files: list[str]) -> bool:
    """Whether it is the SavedModel that was marked, or one cut short, and not a later one."""
    if MODEL not in files:
        return True
    return _is_file(folder) and marker.get("saved_model_sha256") == _digest(folder)


def _is_file(folder: str) -> bool:
    """Whether the model is a file of its own: we write no links, and one may lead nowhere."""
    path = os.path.join(folder, MODEL)
    return not storage.is_link(path) and not storage.isdir(path)


def _digest(folder: str) -> str:
    content: bytes = storage.read_bytes(os.path.join(folder, MODEL), LARGEST_MODEL)
    return hashlib.sha256(content).hexdigest()


def _of_older(files: list[str]) -> list[str]:
    """Those files that a SavedModel of ours had before there was a marker."""
    return [name for name in files if FILES.fullmatch(name)]


def _is_older(folder: str, files: list[str]) -> bool:
    """Whether a folder without a marker holds a SavedModel of ours."""
    if MODEL not in files or not _is_file(folder):
        return False
    model = _parsed(folder)
    if model is None:
        return False
    return len(model.meta_graphs) == 1 and _has_our_signatures(model.meta_graphs[0].signature_def)


def _parsed(folder: str) -> Any:
    """The SavedModel of a folder; None if it is damaged."""
    model = saved_model_pb2.SavedModel()
    try:
        model.ParseFromString(storage.read_bytes(os.path.join(folder, MODEL), LARGEST_MODEL))
    except DecodeError:
        return None
    return model


def _has_our_signatures(signatures: Any) -> bool:
    """Whether all signatures are such as we write: of one task, or of many."""
    found = {
        name: (frozenset(signature.inputs), set(signature.outputs))
        for name, signature in signatures.items()
        if name != NO_SIGNATURE
    }
    alone = found.pop("ids", None)
    if alone and (alone[0] != IDS or list(found) != ["serving_default"]):
        return False
    return bool(found) and all(outs in TEXTS.get(ins, ()) for ins, outs in found.values())
