"""Examples of a task, from its files: texts, labels, and where each was read."""

import dataclasses
import hashlib
import itertools
from collections.abc import Iterable
from typing import Any

from absl import logging

from adapter_bert_tf.data.columns import check_columns, column_numbers
from adapter_bert_tf.data.malformed_rows import say_left_out, whole_rows
from adapter_bert_tf.data.splits import divide
from adapter_bert_tf.data.tables import find_file, read_table
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks import role

# Houlsby et al. 2019, section 3.3.
TABLE_2_SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of one split, in file order.

    Args:
      text_a: strings.
      text_b: strings, or None for single-sentence tasks.
      labels: strings as in the file, None for a row of a test split without one; or None where no
        row has one.
      indices: the examples' names in a submission.
      places: (path, line number) of each.
    """

    text_a: list[str]
    text_b: list[str] | None
    labels: list[str | None] | list[str] | None
    indices: list[str]
    places: list[tuple[str, int]]

    def __len__(self) -> int:
        return len(self.text_a)

    def texts(self) -> list[tuple[str, ...]]:
        """List with the one or two texts of each example, as a tuple."""
        columns = [self.text_a] + ([self.text_b] if self.text_b is not None else [])
        return list(zip(*columns, strict=True))

    def take(self, rows: Iterable[int]) -> "Examples":
        """The examples with these numbers, in this order."""
        return Examples(*(values and [values[i] for i in rows] for values in self.columns()))

    def digest(self) -> str:
        """SHA-256 of texts and labels."""
        content = repr((self.text_a, self.text_b, self.labels))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def columns(self) -> list[Any]:
        """List of the fields' values, in order."""
        return [getattr(self, field.name) for field in dataclasses.fields(self)]


def read_examples(task, folder, roles, split_seed=0):
    """Reads the splits of a task that have one of these roles.

    Args:
      task: `Task`.
      folder: of its files, local or gs://.
      roles: of `train`, `dev`, `test`.
      split_seed: of the random division, where the publishers made none.

    Returns:
      dict from split to `Examples`.

    Raises:
      InputError: for a missing or empty file, a missing column, a row with too few cells.
    """
    layout = _find_layout(task, folder)
    shares, sources = _division(task, layout, folder)
    require_roles(task, roles, {*map(role, layout), *shares})
    found = {}
    if set(shares) & set(roles):
        whole = _concatenate([read_source(task, source, folder) for source in sources])
        labels = None if task.regression else [task.labels_in(cell) for cell in whole.labels]
        parts = divide(whole.texts(), labels, list(shares.values()), split_seed)
        _require_parts(
            [part for split, part in zip(shares, parts, strict=True) if split in roles],
            shares,
            whole,
        )
        found = {split: whole.take(rows) for split, rows in zip(shares, parts, strict=True)}
    for split, source in layout.items():
        if role(split) in roles and split not in shares:
            found[split] = read_source(task, source, folder, every_row=role(split) == "test")
    return {split: examples for split, examples in found.items() if role(split) in roles}


def _require_parts(parts, shares, whole):
    if not all(parts):
        raise InputError(
            f"{len(whole)} examples, {len(set(whole.texts()))} of them different, are "
            f"too few to divide into {', '.join(shares)} (see {whole.places[0][0]}). "
            "Give a dev file."
        )
    if len(shares) == 2:
        logging.warning(
            "No dev file: a seeded tenth of the %d training examples is the development set.",
            len(whole),
        )


def require_roles(task, roles, there):
    """A task must have what is to be done with it. Raises `InputError`."""
    missing = [name for name in roles if name not in there]
    if not missing:
        return
    message = f"The task {task.name!r} has no {missing[0]} data."
    if not task.adapter_of:
        raise InputError(message)
    raise InputError(
        f"{message} Predict it with an adapter of {task.adapter_of!r}: predict=True, "
        "adapter_dir=...",
        "predict=True",
        "adapter_dir=...",
    )


def _find_layout(task, folder):
    """The first layout whose pooled files are all there, or else the first of all."""
    for layout in task.layouts:
        sources = _pooled(layout)
        if sources and all(find_file(source, folder) for source in sources):
            return layout
    return task.layouts[0]


def _pooled(layout):
    return [source for split, source in layout.items() if role(split) == "all"]


def _division(task, layout, folder):
    """(shares by split, the sources to divide so); empty where the files are divided already."""
    if _pooled(layout):
        return TABLE_2_SHARES, _pooled(layout)
    if task.dev_share and find_file(layout["dev"], folder) is None:
        return {"train": 1 - task.dev_share, "dev": task.dev_share}, [layout["train"]]
    return {}, []


def _concatenate(parts):
    """Several `Examples` as one."""
    columns = zip(*(part.columns() for part in parts), strict=True)
    joined: list[Any] = [
        None if values[0] is None else list(itertools.chain(*values)) for values in columns
    ]
    return Examples(*joined)


def read_source(task, source, folder, every_row=False):
    """The `Examples` of one `Source`.

    Args:
      task: `Task`.
      source: `Source`.
      folder: of its files.
      every_row: whether rows without a text, or without a label of the task, are kept: a test file
        is answered row by row.
    """
    header, rows = read_table(source, folder)
    columns = column_numbers(source, header, folder)
    check_columns(task, source, header, rows, columns, f"{folder}/{source.file}")
    count = len(rows)
    rows, left_out = whole_rows(source, header, rows, max(columns.values()) + 1, every_row)
    kept = []
    for place, cells in rows:
        row = {field: cells[i] for field, i in columns.items()} | {"place": place}
        reason = _clean(task, source, row)
        if reason and not every_row:
            left_out.setdefault(reason, []).append(place)
        else:
            kept.append(row)
    say_left_out(source.file, left_out, count)
    if not kept:
        raise InputError(f"{folder}/{source.file} holds no examples.")
    return Examples(
        text_a=[row["text_a"] for row in kept],
        text_b=[row["text_b"] for row in kept] if "text_b" in columns else None,
        labels=_labels(task, source, kept) if "label" in columns else None,
        indices=[row.get("index", str(i)) for i, row in enumerate(kept)],
        places=[row["place"] for row in kept],
    )


def _labels(task, source, rows):
    """The label of each row, None for none; None if no row has one."""
    if task.multi_label:  # An empty cell says that there is none, which is known.
        return [row["label"] for row in rows]
    labels = [row["label"] or None for row in rows]
    missing = labels.count(None)
    if 0 < missing < len(labels):
        logging.warning(
            "%s: %d of %d rows have no label of the task. They are answered, and not scored.",
            source.file,
            missing,
            len(rows),
        )
    return None if missing == len(labels) else labels


def _clean(task, source, row):
    """Cleans a row in place; returns why it is left out, or None."""
    for what, by_what in source.replace:
        for field in ("text_a", "text_b"):
            if field in row:
                row[field] = row[field].replace(what, by_what)
    if "label" in row:
        label = row["label"].strip()
        row["label"] = task.relabel(label) if task.relabel else label
        if row["label"] is None:
            return "labels that the task does not use"
        if not row["label"] and not task.multi_label:
            return "no label"
    return "no text" if source.drop_empty and not row["text_a"].strip() else None
