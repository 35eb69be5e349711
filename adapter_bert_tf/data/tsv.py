"""Reads the tab-separated files of GLUE: one example a line, no quoting."""

import dataclasses
import os

import numpy as np
import tensorflow as tf

from adapter_bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of one split, in file order.

    Args:
      text_a: strings.
      text_b: strings, or None for single-sentence tasks.
      labels: int32 `[examples]`, or None where the file has none.
      indices: the examples' names in a submission.
    """

    text_a: list[str]
    text_b: list[str] | None
    labels: np.ndarray | None
    indices: list[str]

    def __len__(self):
        return len(self.text_a)


def read_split(task, folder, split):
    """Reads one split of a task.

    Args:
      task: `Task`.
      folder: `--data_dir`, local or gs://.
      split: `train`, `dev` or `test`.

    Raises:
      InputError: for a missing or empty file, a row with too few columns, an unknown label.
    """
    path = os.path.join(folder, task.file_name(split))
    columns = task.test_columns if split == "test" else task.columns
    lines = _lines(path)
    place = _header(path, lines, columns)
    first = 1 if columns.has_header else 0
    rows = []
    for number, line in enumerate(lines[first:], start=first + 1):
        cells = line.split("\t")
        if len(cells) <= max(place.values()):
            raise InputError(f"{path}, line {number}: expected at least {max(place.values()) + 1} "
                             f"tab-separated columns. Received {len(cells)}: {line[:80]!r}")
        rows.append({field: cells[i] for field, i in place.items()})
    if not rows:
        raise InputError(f"{path} holds no examples.")
    return Examples(
        text_a=[row["text_a"] for row in rows],
        text_b=[row["text_b"] for row in rows] if "text_b" in place else None,
        labels=_label_ids(path, rows, task.labels, first) if "label" in place else None,
        indices=[row.get("index", str(i)) for i, row in enumerate(rows)],
    )


def _lines(path):
    """Lines without their ends, a byte-order mark and the empty rest after the last one."""
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            text = file.read().decode("utf-8-sig")
    except tf.errors.NotFoundError as error:
        folder = os.path.dirname(path)
        exists = tf.io.gfile.isdir(folder)
        found = f"found {sorted(tf.io.gfile.listdir(folder))}" if exists else "no such folder"
        raise InputError(f"No data file {path!r}: {found}.") from error
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {path!r}: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}") from error
    if not text:
        raise InputError(f"{path} is empty.")
    # Only \n ends a line: sentences contain form feeds and other characters of str.splitlines().
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _header(path, lines, columns):
    """Dict from field to column number."""
    fields = {f.name: getattr(columns, f.name) for f in dataclasses.fields(columns)}
    fields = {field: column for field, column in fields.items() if column is not None}
    if not columns.has_header:
        return fields
    header = lines[0].split("\t") if lines else []
    missing = [column for column in fields.values() if column not in header]
    if missing:
        raise InputError(f"{path}, line 1: the header has no column {missing}. Received: {header}")
    return {field: header.index(column) for field, column in fields.items()}


def _label_ids(path, rows, labels, first):
    ids = {label: i for i, label in enumerate(labels)}
    for number, row in enumerate(rows, start=first + 1):
        if row["label"] not in ids:
            raise InputError(f"{path}, line {number}: unknown label {row['label']!r}. "
                             f"The task's labels are {list(labels)}.")
    return np.array([ids[row["label"]] for row in rows], np.int32)
