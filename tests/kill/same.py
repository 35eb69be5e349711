"""Whether two folders of runs hold the same, but for times, speeds and where a run was taken up."""

import json
import os
import pathlib
import re

import numpy as np
import tensorflow as tf

PASSING = {
    *("train_seconds", "train_cpu_seconds", "examples_per_second", "peak_memory_mb"),
    "resumed_from_step",
}
EVENTS = re.compile(r"(.*/)?events\.out\.tfevents\.\d+\..*")  # A run has one for each start.
# A name of its own each time: of the shards of windows, and of packed text.
DRAWN = re.compile(r"features/(\w+)/[0-9a-f]{8}[-.](\d\d\.tfrecord|sequences)")


def differences(expected, found):
    """List of what two folders do not have in common, one line each; empty if they are the same."""
    ours, theirs = _files(expected), _files(found)
    lines = [f"missing: {name}" for name in sorted(ours.keys() - theirs.keys())]
    lines += [f"left over: {name}" for name in sorted(theirs.keys() - ours.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        if not _is_same(name, ours[name], theirs[name]):
            lines.append(f"different: {name}")
    return lines


def _files(folder):
    """Dict from a name to the path, of all files, links and empty folders but TensorBoard's."""
    found = {}
    for place, folders, names in os.walk(folder):
        empty = [place] if not folders and not names else []
        for path in [*empty, *(os.path.join(place, name) for name in names)]:
            name = os.path.relpath(path, folder)
            if not EVENTS.fullmatch(name):
                known = DRAWN.sub(r"features/\1/\2", name.removeprefix("out/"))
                found[name if known in found else known] = path
    return found


def _is_same(name, one, other):
    if os.path.isdir(one) or os.path.isdir(other):
        return os.path.isdir(one) == os.path.isdir(other)
    for pattern, read in READERS:
        if re.fullmatch(pattern, name):
            return read(one) == read(other)
    return pathlib.Path(one).read_bytes() == pathlib.Path(other).read_bytes()


def _json(path):
    return _lasting(json.loads(pathlib.Path(path).read_text()))


def _record(path):
    """A `run.json`, where a SavedModel counts by its files: a graph's bytes are not repeatable."""
    record = _json(path)
    noted = record.get("results", {})
    return record | {"results": {name: _named(value) for name, value in noted.items()}}


def _named(noted):
    return sorted(noted) if isinstance(noted, dict) else noted


def _metrics(path):
    """Rows of evaluations, and the last step. Losses are means since a report, which are timed."""
    rows = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    assert [row["step"] for row in rows] == sorted(row["step"] for row in rows), path
    return [row for row in rows if "loss" not in row], rows[-1]["step"]


def _lasting(value):
    """A JSON value without what passes."""
    if isinstance(value, dict):
        return {name: _lasting(v) for name, v in value.items() if name not in PASSING}
    return [_lasting(v) for v in value] if isinstance(value, list) else value


def _checkpoint(path):
    """Dict from name to bytes of the variables of a checkpoint, of the path of its index."""
    reader = tf.train.load_checkpoint(path.removesuffix(".index"))
    names = [n for n in reader.get_variable_to_shape_map() if n != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    return {name: np.asarray(reader.get_tensor(name)).tobytes() for name in names}


def _state(path):
    state = tf.train.get_checkpoint_state(os.path.dirname(path))
    paths = [state.model_checkpoint_path, *state.all_model_checkpoint_paths]
    return [os.path.basename(p) for p in paths]


def _nothing(path):
    """Of files whose bytes say nothing: others are read in their place."""


READERS = (
    (r"run\.json", _record),
    (r"metrics\.jsonl", _metrics),
    # Drawn from the others, with their times and losses.
    (r"(.*/)?report\.html", _nothing),
    (r"features/\w+/(done|packed)\.json", lambda path: _json(path) | {"name": ""}),
    (r"checkpoints/checkpoint", _state),
    (r"checkpoints/ckpt-\d+\.index|saved_model/variables/variables\.index", _checkpoint),
    (r"checkpoints/ckpt-\d+\.data-.*|saved_model/variables/variables\.data-.*", _nothing),
    # Graphs are not repeatable byte by byte; the test that loads one is in `tests/serving`.
    (r"saved_model/(saved_model|fingerprint)\.pb", _nothing),
    (r"saved_model/adapter_bert_tf\.json", lambda path: _json(path)["files"]),
)
