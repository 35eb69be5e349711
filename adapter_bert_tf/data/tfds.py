"""GLUE and SQuAD from TensorFlow Datasets, which downloads and prepares them once."""

import contextlib
import os
import re
from typing import Any

import tensorflow as tf
from google.protobuf import json_format

from adapter_bert_tf import storage
from adapter_bert_tf.data.examples import Examples, require_roles
from adapter_bert_tf.errors import Damaged, Mismatch, NotFound, Unavailable
from adapter_bert_tf.sanitize import preview, truncate
from adapter_bert_tf.tasks import role

ROLES = {"train": "train", "validation": "dev", "test": "test"}
# What TensorFlow Datasets raises for files that are missing, changed or cut off.
DAMAGE = (OSError, ValueError, KeyError, AssertionError, tf.errors.OpError, json_format.Error)


def read_tfds(task, folder, roles):
    """Reads the splits of a GLUE task that have one of these roles: split to `Examples`.

    Labels are as in GLUE's own files. `folder` is where TensorFlow Datasets keeps its data; None:
    `~/tensorflow_datasets`. Raises `InputError` for a task that is missing or not downloadable.
    """
    if task.tfds is None:
        raise NotFound(
            f"TensorFlow Datasets' `glue` has no {task.name!r}: use data_source='tsv'.",
            "data_source='tsv'",
        )
    builder = prepared_builder(f"glue/{task.tfds[0]}", folder)
    splits = {_split_name(name): name for name in builder.info.splits}
    require_roles(task, roles, set(map(role, splits)))
    return {
        split: _read(task, builder, name) for split, name in splits.items() if role(split) in roles
    }


def prepared_builder(name: str, folder: str | None) -> Any:
    """Returns the builder of a dataset, whose data it prepares first if they are missing.

    Raises `InputError` for a dataset that is missing, damaged or not downloadable.
    """
    import tensorflow_datasets as tfds  # Takes a second, and only this source needs it.

    with _loading(name, folder):
        builder = tfds.builder(name, data_dir=folder, try_gcs=False)
    if not builder.data_path.exists():
        _refuse_tables(name, folder)
        print(f"Preparing {name} in {builder.data_path}: a download, once.", flush=True)
    with _loading(name, folder):
        builder.download_and_prepare()
    return builder


@contextlib.contextmanager
def _loading(name, folder):
    """Turns errors of TensorFlow Datasets into `InputError`."""
    import tensorflow_datasets as tfds

    try:
        yield
    except (*DAMAGE, tfds.download.DownloadError, tfds.core.DatasetNotFoundError) as error:
        raise Unavailable(
            f"TensorFlow Datasets cannot load {name!r}: {_reason(error)}. Its folder is "
            f"{folder or '~/tensorflow_datasets'} (data_dir). If {name} in it is damaged, remove "
            "that one: it is prepared again.",
            "data_dir",
        ) from error


def _refuse_tables(name, folder):
    """Raises `InputError` for a folder of tables: nothing is downloaded into it."""
    names = storage.listdir(folder) if folder and storage.isdir(folder) else []
    if tables := sorted(name for name in names if name.endswith((".tsv", ".csv", ".jsonl"))):
        raise Mismatch(
            f"{folder} (data_dir) holds tables, such as {preview(tables[0])}, and not the {name} "
            "of TensorFlow Datasets. Tables are read with data_source='tsv'.",
            "data_dir",
            "data_source='tsv'",
        )


def _reason(error):
    """The message of an error without TensorFlow's place in its graph."""
    message = re.sub(r"^{{.*?}} | \[Op:.*| \[\[{{.*", "", str(error), flags=re.DOTALL)
    return truncate(message.rstrip("."), 400)


def builder_rows(builder: Any, split: str) -> list[dict[str, Any]]:
    """All prepared rows of a split. Raises `InputError` if they are damaged."""
    import tensorflow_datasets as tfds

    try:
        return list(tfds.as_numpy(builder.as_dataset(split)))
    except DAMAGE as error:
        raise Damaged(
            f"The data of TensorFlow Datasets in {builder.data_path} is damaged, split {split}: "
            f"{_reason(error)}. Remove that folder: it is prepared again."
        ) from error


def _split_name(name):
    """`validation_matched` is `dev`, `validation_mismatched` `dev_mismatched`."""
    first, _, rest = name.partition("_")
    return ROLES[first] + ("" if rest in ("", "matched") else f"_{rest}")


def _read(task, builder, split):
    """`Examples` of one split; labels of -1 are hidden."""
    rows = sorted(builder_rows(builder, split), key=lambda row: int(row["idx"]))
    columns = [[row[name].decode() for row in rows] for name in task.tfds[1:]]
    hidden = all(row["label"] == -1 for row in rows)
    place = os.path.join(str(builder.data_path), split)
    return Examples(
        columns[0],
        columns[1] if columns[1:] else None,
        None if hidden else [_label(task, builder, row["label"]) for row in rows],
        [str(int(row["idx"])) for row in rows],
        [(place, int(row["idx"])) for row in rows],
    )


def _label(task, builder, value):
    """A label as GLUE's files write it: by name if they are the same names, else by number."""
    if not task.labels:
        return str(float(value))
    names = builder.info.features["label"].names
    return names[value] if set(names) == set(task.labels) else task.labels[value]


def read_tfds_squad(name, folder, split):
    """SQuAD as the `data` of its JSON file; `split` is `train` or `dev`. Raises `InputError`."""
    builder = prepared_builder(name, folder)
    articles: dict[str, dict[str, list[Any]]] = {}
    for row in builder_rows(builder, {"train": "train", "dev": "validation"}[split]):
        texts, starts = row["answers"]["text"], row["answers"]["answer_start"]
        answers = [
            {"text": text.decode(), "answer_start": int(start)}
            for text, start in zip(texts, starts, strict=True)
        ]
        qa = {"id": row["id"].decode(), "question": row["question"].decode(), "answers": answers}
        if row.get("is_impossible", False):
            qa["is_impossible"] = True
        paragraphs = articles.setdefault(row["title"].decode(), {})
        paragraphs.setdefault(row["context"].decode(), []).append(qa)
    data = []
    for title, paragraphs in articles.items():
        listed = [{"context": context, "qas": qas} for context, qas in paragraphs.items()]
        data.append({"title": title, "paragraphs": listed})
    return data
