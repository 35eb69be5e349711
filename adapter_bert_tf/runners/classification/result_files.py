"""Result files of tasks whose examples are rows of tables: predictions and evaluation.

The report is drawn from `eval_details.json` and `eval_classes.tsv`, without model and data.
"""

import csv
import glob
import io
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.run.result_files import write_details_file
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.sanitize import printable, truncate
from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.task_types.details import LONGEST_LABEL, LONGEST_TEXT
from adapter_bert_tf.tasks.task import Task, role

USUAL = ("dev", "test")  # Splits of most tasks; their names are reserved for all.
MOST_PRINTED = 6  # Predictions.
MOST_SHOWN = 20  # Rows of a printed table; the file has all.
WIDEST_LABEL = 24  # Characters on the screen.
MOST_COLUMNS = 9  # With the confusion of classes.


def names_of(tasks: Collection[ClassificationData]) -> list[str]:
    """Returns patterns of the result files of tasks; of no tasks, the files that any may leave."""
    names = {"test_metrics.txt", *(() if tasks else _names_of_splits("", USUAL))}
    for task in tasks:
        splits = {split for layout in task.task.layouts for split in layout}
        submitted = {task.task.title, *map(task.task.submission, splits)}
        names |= {f"{name}.tsv" for name in submitted}
        names |= _names_of_splits(task.file_prefix, splits | set(USUAL))
    return sorted(map(glob.escape, names))


def _names_of_splits(prefix: str, splits: Iterable[str]) -> set[str]:
    names = set()
    for split in splits:
        names |= {
            f"{with_suffix(prefix + 'eval_details', split)}.json",
            f"{with_suffix(prefix + 'eval_classes', split)}.tsv",
        }
        if role(split) == "test":
            names.add(f"{prefix}{raw_file(split)}.tsv")
    return names


def with_suffix(stem: str, split: str) -> str:
    """Returns `STEM` for a split `dev`, `STEM_mismatched` for `dev_mismatched`."""
    return "_".join([stem, *split.split("_")[1:]])


def raw_file(split: str) -> str:
    """Returns the name of the file of probabilities or scores of a test split, without `.tsv`."""
    return split.replace("test", "test_results")


def write_test_results(
    folder: str, task: ClassificationData, predictions: Mapping[str, np.ndarray]
) -> None:
    """Writes the predictions of each test split, and prints the first few."""
    for split, predicted in predictions.items():
        examples = task.examples[split]
        indices = examples.indices
        write_predictions(folder, task.task, split, indices, predicted, task.file_prefix)
        labels = task.task_type.written(task.task, predicted[:MOST_PRINTED])
        for label, row, texts in zip(labels, predicted, examples.texts(), strict=False):
            cut = " | ".join(text[:200] for text in texts)
            print(printable(f"  {label}{task.task_type.certainty(row)}  {cut}"))


def write_predictions(
    folder: str,
    task: Task,
    split: str,
    indices: Sequence[str],
    predicted: np.ndarray,
    prefix: str = "",
) -> None:
    """Writes adapter-bert's `test_results.tsv`, and the file that the GLUE server takes.

    Args:
      folder: `--output_dir`.
      task, split: whose predictions.
      indices: the examples' names.
      predicted: float `[examples, labels]` probabilities, or `[examples]` scores.
      prefix: of the first file's name.
    """
    task_type = table_type(task.task_type)
    rows = predicted.reshape(len(predicted), -1).tolist()
    raw = os.path.join(folder, f"{prefix}{raw_file(split)}.tsv")
    storage.write_text(raw, "".join("\t".join(map(str, row)) + "\n" for row in rows))
    lines = [
        f"{i}\t{printable(label)}"
        for i, label in zip(indices, task_type.written(task, predicted), strict=True)
    ]
    path = os.path.join(folder, f"{task.submission(split)}.tsv")
    storage.write_text(path, "\n".join(["index\tprediction", *lines]) + "\n")
    columns = _format_columns(task.labels or ())
    print(f"Predictions: {path}, {task_type.raw_outputs}: {raw}{columns}", flush=True)


def _format_columns(labels: Sequence[str]) -> str:
    """Returns which column of the file of probabilities, which has no header, is which label."""
    if not labels:
        return ""
    names = [printable(label)[:WIDEST_LABEL] for label in labels[:MOST_SHOWN]]
    more = f" and {len(labels) - MOST_SHOWN} more" if len(labels) > MOST_SHOWN else ""
    return f" (columns: {', '.join(names)}{more})"


def write_evaluation(
    folder: str, task: ClassificationData, predictions: Mapping[str, np.ndarray]
) -> None:
    """Writes the details of each evaluated split, and its table of classes if the type has one."""
    for split, predicted in predictions.items():
        encoded = task.labels[split]
        if encoded is None:
            continue
        known = task.task_type.is_known(encoded)
        made = task.task_type.class_table(task.labels_in_order, encoded[known], predicted[known])
        if made is not None:
            title, table = made
            name = with_suffix(f"{task.file_prefix}eval_classes", split)
            storage.write_text(os.path.join(folder, f"{name}.tsv"), _tsv(table))
            print(format_table(title.format(task.split_title(split)), table), flush=True)
        if known.any():
            name = with_suffix(f"{task.file_prefix}eval_details", split)
            details = _details_of(task, split, encoded, predicted)
            write_details_file(folder, name, task.name, split, details)


def _details_of(
    task: ClassificationData, split: str, encoded: np.ndarray, predicted: np.ndarray
) -> dict[str, Any]:
    """Returns the details of a split with known labels, with texts and lines of the examples."""
    rows = np.flatnonzero(task.task_type.is_known(encoded))
    texts, lines = task.examples[split].texts(), task.examples[split].places

    def example(row: int) -> dict[str, Any]:
        cut = [truncate(text, LONGEST_TEXT) for text in texts[rows[row]]]
        return {"line": int(lines[rows[row]][1]), "texts": cut}

    labels = [truncate(label, LONGEST_LABEL) for label in task.labels_in_order]
    details = task.task_type.details(labels, encoded[rows], predicted[rows])
    shown = [example(one.pop("row")) | one for one in details.pop("shown")]
    return {"examples": len(rows), **details, "shown": shown}


def format_table(title: str, table: Sequence[Sequence[str]]) -> str:
    """Formats a table with a header, with the confusion of classes only if there is room."""
    width = len(table[0]) if len(table) <= MOST_COLUMNS else 5
    rows = [
        [printable(cell)[:WIDEST_LABEL] for cell in row[:width]] for row in table[: MOST_SHOWN + 1]
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    if more := max(len(table) - 1 - MOST_SHOWN, 0):
        lines.append(f"and {more} more")
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _tsv(table: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(table)
    return text.getvalue()
