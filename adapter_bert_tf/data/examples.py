"""Reads the examples of a task: texts, labels, and the location of each in its file."""

import dataclasses
import hashlib
import itertools
from collections.abc import Iterable
from typing import Any

from absl import logging

from adapter_bert_tf.data.labels import ONE_LABEL, find_label
from adapter_bert_tf.data.splits import random_split, stratified_subset
from adapter_bert_tf.data.tables.blocks import require_one_layout
from adapter_bert_tf.data.tables.columns import check_columns, column_numbers
from adapter_bert_tf.data.tables.files import find_file, read_table
from adapter_bert_tf.data.tables.indicator_columns import HIDDEN, join_columns
from adapter_bert_tf.data.tables.malformed_rows import (
    RowFindings,
    find_doubled_quotes,
    skip_malformed,
)
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, truncate
from adapter_bert_tf.tasks import role

# Houlsby et al. 2019, section 3.3.
TABLE_2_PROPORTIONS = {"train": 0.8, "dev": 0.1, "test": 0.1}


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of one split, in file order."""

    text_a: list[str]
    text_b: list[str] | None  # None for single-sentence tasks.
    labels: list[str | None] | list[str] | None  # None, of a row or of all rows: not known.
    indices: list[str]  # The examples' names in a submission.
    places: list[tuple[str, int]]  # Path and line number of each.

    def __len__(self) -> int:
        return len(self.text_a)

    def texts(self) -> list[tuple[str, ...]]:
        """Returns the one or two texts of each example as a tuple."""
        columns = [self.text_a] + ([self.text_b] if self.text_b is not None else [])
        return list(zip(*columns, strict=True))

    def take(self, rows: Iterable[int]) -> "Examples":
        """Returns the examples with these numbers, in this order."""
        return Examples(*(values and [values[i] for i in rows] for values in self.columns()))

    def digest(self) -> str:
        """Returns the SHA-256 of texts and labels."""
        content = repr((self.text_a, self.text_b, self.labels))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def columns(self) -> list[Any]:
        """Returns the values of all fields, in order."""
        return [getattr(self, field.name) for field in dataclasses.fields(self)]


def read_examples(task, folder, roles, split_seed=0, cells=ONE_LABEL):
    """Reads the splits of a task that have one of `roles`: a dict from split to `Examples`.

    `folder` is local or gs://, `split_seed` that of a random split if the publishers made none, and
    `cells` are `LabelCells`. Raises `InputError` for a missing or empty file, a missing column, or
    a malformed row.
    """
    layout = _select_layout(task, folder)
    proportions, sources = _split_sources(task, layout, folder)
    require_roles(task, roles, {*map(role, layout), *proportions})
    splits = {}
    if set(proportions) & set(roles):
        pooled = _concatenate([read_source(task, source, folder, cells) for source in sources])
        labels = [cells.labels_in(cell) for cell in pooled.labels]
        parts = random_split(pooled.texts(), labels, list(proportions.values()), split_seed)
        rows = dict(zip(proportions, parts, strict=True))
        _require_nonempty([rows[split] for split in rows if split in roles], proportions, pooled)
        splits = {split: pooled.take(rows[split]) for split in rows}
    for split, source in layout.items():
        if role(split) in roles and split not in proportions:
            every_row = role(split) == "test"
            splits[split] = read_source(task, source, folder, cells, every_row)
    return {split: examples for split, examples in splits.items() if role(split) in roles}


def sources_of(task, folder, roles):
    """The sources that `read_examples` reads for these roles. Raises `InputError`."""
    layout = _select_layout(task, folder)
    proportions, pooled = _split_sources(task, layout, folder)
    require_roles(task, roles, {*map(role, layout), *proportions})
    alone = [s for name, s in layout.items() if role(name) in roles and name not in proportions]
    return [*alone, *(pooled if set(proportions) & set(roles) else [])]


def _require_nonempty(parts, proportions, examples):
    if not all(parts):
        raise InputError(
            f"{len(examples)} examples, {len(set(examples.texts()))} of them different, are "
            f"too few to split into {', '.join(proportions)} (see {examples.places[0][0]}). "
            "Give a dev file."
        )
    if len(proportions) == 2:
        logging.warning(
            f"No dev file: a seeded {proportions['dev']:.0%} of the {len(examples)} training "
            "examples is the development set."
        )


def require_roles(task, roles, available):
    """Raises `InputError` if a task has no data for one of `roles`."""
    missing = [name for name in roles if name not in available]
    if not missing:
        return
    message = f"The task {task.name!r} has no {missing[0]} data."
    if not task.adapter_of:
        raise InputError(message)
    message += f" Predict it with an adapter for {task.adapter_of!r}: predict=True, adapter_dir=..."
    raise InputError(message, "predict=True", "adapter_dir=...")


def _select_layout(task, folder):
    """Selects the first layout whose pooled files all exist, else the first layout."""
    for layout in task.layouts:
        sources = _pooled_sources(layout)
        if sources and all(find_file(source, folder) for source in sources):
            return layout
    return task.layouts[0]


def _pooled_sources(layout):
    return [source for split, source in layout.items() if role(split) == "all"]


def _split_sources(task, layout, folder):
    """Returns (proportions by split, sources to split); empty if the files are already split."""
    if pooled := _pooled_sources(layout):
        return TABLE_2_PROPORTIONS, pooled
    if task.dev_share and find_file(layout["dev"], folder) is None:
        return {"train": 1 - task.dev_share, "dev": task.dev_share}, [layout["train"]]
    return {}, []


def _concatenate(parts):
    columns = zip(*(part.columns() for part in parts), strict=True)
    joined: list[Any] = [
        None if values[0] is None else list(itertools.chain(*values)) for values in columns
    ]
    return Examples(*joined)


def read_source(task, source, folder, label_cells=ONE_LABEL, every_row=False):
    """Reads the `Examples` of one `Source`.

    With `every_row` it keeps rows without a text or a valid label: predictions for a test file have
    one row for each of its rows.
    """
    require_one_layout(source)
    header, rows = read_table(source, folder)
    reader = RowReader(task, source, folder, label_cells, every_row)
    examples = reader.examples(header, rows)
    for sentence in reader.findings.sentences(every_row):
        logging.warning("%s", sentence)
    if not len(examples):
        raise InputError(f"{source.location(folder)} has no examples.")
    if examples.labels is None or label_cells.may_be_empty:
        return examples
    return dataclasses.replace(examples, labels=_known_labels(source, examples.labels))


class RowReader:
    """Makes examples of the rows of a source, which come in one part or in many.

    `findings` has what is odd about them, for warnings after the last part. Arguments as of
    `read_source`.
    """

    def __init__(self, task, source, folder, label_cells=ONE_LABEL, every_row=False):
        self._task, self._source, self._folder = task, source, folder
        self._cells, self._every_row = label_cells, every_row
        self._columns = None  # Numbers by field, once the first part has come.
        self.findings = RowFindings(source.file)

    def examples(self, header, rows):
        """Returns the `Examples` of these rows, maybe none. Raises `InputError`.

        `header` is that of all rows, or None; `rows` are places and cells. A label is "" if the
        row has none.
        """
        source, findings = self._source, self.findings
        if self._cells.several:
            header, rows = join_columns(source, header, rows, findings)
        if self._columns is None:
            self._columns = column_numbers(source, header, self._folder)
            location = source.location(self._folder)
            check_columns(self._cells, source, header, rows, self._columns, location)
        columns, first = self._columns, findings.count
        width = max(columns.values()) + 1
        rows = skip_malformed(source, header, rows, width, self._every_row, findings)
        find_doubled_quotes(source, rows, columns.values(), findings)
        records = []
        for place, cells in rows:
            row = {field: cells[i] for field, i in columns.items()} | {"place": place}
            reason = _clean_row(self._task, source, row, self._cells.may_be_empty)
            if reason and not self._every_row:
                findings.add(reason, place)
            else:
                records.append(row)
        return Examples(
            text_a=[row["text_a"] for row in records],
            text_b=[row["text_b"] for row in records] if "text_b" in columns else None,
            labels=[row["label"] for row in records] if "label" in columns else None,
            indices=[row.get("index", str(first + i)) for i, row in enumerate(records)],
            places=[row["place"] for row in records],
        )


def _known_labels(source, cells):
    """Returns the label of each row, None without one; None if no row has a label."""
    labels = [cell or None for cell in cells]
    missing = labels.count(None)
    if 0 < missing < len(labels):
        logging.warning(
            f"{source.file}: {missing} of {len(labels)} rows have no label of the task. They are "
            "predicted but not scored."
        )
    return None if missing == len(labels) else labels


def _clean_row(task, source, row, may_be_empty):
    """Cleans a row in place; returns the reason to skip it, or None."""
    for old, new in source.replace:
        for field in ("text_a", "text_b"):
            if field in row:
                row[field] = row[field].replace(old, new)
    if "label" in row:
        label = row["label"].strip()
        row["label"] = task.relabel(label) if task.relabel else label
        if row["label"] is None:
            return "labels that the task does not use"
        if not row["label"] and not may_be_empty:
            return "no label"
    return "no text" if source.drop_empty and not row["text_a"].strip() else None


def with_equal_numbers(examples, split, labels, cells=ONE_LABEL):
    """The examples with `1.0` read as the label `1`, where all labels are numbers; warns of it."""
    replaced = {}

    def rename(label):
        found = find_label(label, labels)
        if found != label:
            replaced[label] = found
        return found

    cells_as_read = {
        cell: None if cell is None else cells.renamed(cell, rename)
        for cell in set(examples.labels or ())
    }
    if not replaced:
        return examples
    spellings = ", ".join(f"{preview(old)} as {preview(replaced[old])}" for old in sorted(replaced))
    logging.warning(f"{split}: equal numbers are one label; read {truncate(spellings, 200)}.")
    return dataclasses.replace(examples, labels=[cells_as_read[c] for c in examples.labels])


def without_hidden_labels(examples, split, labels):
    """The examples without labels, if all labels are -1 or empty, which hides them; warns of it."""
    cells = set(examples.labels or ()) - {None}
    if not cells or not cells <= {HIDDEN, f"{HIDDEN}.0", ""} or HIDDEN in labels:
        return examples
    found = "empty" if cells == {""} else HIDDEN
    logging.warning(f"{split}: all labels are {found}, so they count as not known.")
    return dataclasses.replace(examples, labels=None)


def limit(examples, number, seed, cells=ONE_LABEL):
    """A seeded, stratified subset of `number` examples; all of them if there are no more."""
    if number is None or number >= len(examples):
        return examples
    strata = [cells.stratum(cell) for cell in examples.labels]
    return examples.take(stratified_subset(strata, number, seed))
