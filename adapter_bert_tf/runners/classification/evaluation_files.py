"""Files of one evaluated split: `eval_details.json` and `eval_classes.tsv`.

The report is drawn from them, so that it can be drawn again without model and data.
"""

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.runners.classification.result_names import after_split
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.sanitize import printable, truncate
from adapter_bert_tf.task_types.details import LONGEST_LABEL, LONGEST_TEXT

MOST_SHOWN = 20  # Classes; the file has all.
WIDEST_LABEL = 24  # Characters on the screen.
MOST_COLUMNS = 9  # With the confusion of classes.


def write_details(
    folder: str, before: str, task: ClassificationData, predictions: Mapping[str, np.ndarray]
) -> None:
    """Writes the details of each evaluated split of a task.

    Args:
      folder: `--output_dir`.
      before: what the files' names begin with.
      task: `ClassificationData`.
      predictions: dict from split to predictions.
    """
    for split, predicted in predictions.items():
        encoded = task.labels[split]
        if encoded is not None and task.task_type.is_known(encoded).any():
            name = after_split(f"{before}eval_details", split)
            write_file(folder, name, task.name, split, split_details(task, split, predicted))


def write_file(folder: str, name: str, task: str, split: str, content: dict[str, Any]) -> None:
    """Writes `NAME.json`; escaped, because texts may hold what no UTF-8 file can."""
    content = {"task": task, "split": split, **content}
    storage.write_text(os.path.join(folder, f"{name}.json"), json.dumps(content, indent=1) + "\n")


def split_details(task: ClassificationData, split: str, predicted: np.ndarray) -> dict[str, Any]:
    """The details of one split with known labels, with texts and lines of the examples shown."""
    encoded, examples = task.labels[split], task.examples[split]
    assert encoded is not None
    rows = np.flatnonzero(task.task_type.is_known(encoded))
    texts, lines = examples.texts(), examples.places

    def example(row: int) -> dict[str, Any]:
        cut = [truncate(text, LONGEST_TEXT) for text in texts[rows[row]]]
        return {"line": int(lines[rows[row]][1]), "texts": cut}

    labels = [truncate(label, LONGEST_LABEL) for label in task.labels_in_order]
    found = task.task_type.details(labels, encoded[rows], predicted[rows])
    shown = [example(one.pop("row")) | one for one in found.pop("shown")]
    return {"examples": len(rows), **found, "shown": shown}


def write_class_tables(
    folder: str, before: str, task: ClassificationData, predictions: Mapping[str, np.ndarray]
) -> None:
    """Writes and prints the table of labels of each evaluated split, if the type has one.

    Args: as of `write_details`.
    """
    for split, predicted in predictions.items():
        encoded = task.labels[split]
        if encoded is None:
            continue
        known = task.task_type.is_known(encoded)
        made = task.task_type.class_table(task.labels_in_order, encoded[known], predicted[known])
        if made is not None:
            title, table = made
            name = after_split(f"{before}eval_classes", split)
            storage.write_text(os.path.join(folder, f"{name}.tsv"), _tsv(table))
            print(format_table(title.format(task.shown(split)), table), flush=True)


def format_table(title: str, table: Sequence[Sequence[str]]) -> str:
    """The table as text; the confusion of classes only where there is room for it.

    Args:
      title: a line above it.
      table: rows with a header.
    """
    width = len(table[0]) if len(table) <= MOST_COLUMNS else 5
    rows = [
        [printable(cell)[:WIDEST_LABEL] for cell in row[:width]] for row in table[: MOST_SHOWN + 1]
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    more = len(table) - 1 - MOST_SHOWN
    return "\n".join(
        [title, *(f"  {line}" for line in lines)] + [f"  and {more} more"] * (more > 0)
    )


def _tsv(table: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(table)
    return text.getvalue()
