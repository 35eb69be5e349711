"""What an evaluation says of single examples, in a file of bounded size: `eval_details.json`.

Calibration, the errors that the model was surest of with their texts, and of scores the residuals.
The report is drawn from it, so that it can be drawn again without model and data.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.data.labels import is_known
from adapter_bert_tf.runners.classification.result_names import after_split
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.tasks.calibration import calibration
from adapter_bert_tf.tasks.metrics import SURE

MOST_ERRORS = 25
MOST_POINTS = 500
MOST_LABELS = 100  # In a table of them.
LONGEST_TEXT, LONGEST_LABEL = 600, 80  # Characters.


def write(
    folder: str, before: str, task: ClassificationData, predictions: Mapping[str, np.ndarray]
) -> None:
    """Writes the details of each evaluated split of a task.

    Args:
      folder: `--output_dir`.
      before: what the files' names begin with.
      task: `ClassificationData`.
      predictions: dict from split to probabilities, float `[examples, labels]`, or scores.
    """
    for split, predicted in predictions.items():
        truth = task.labels[split]
        if truth is not None and is_known(truth).any():
            name = after_split(f"{before}eval_details", split)
            write_file(folder, name, task.name, split, split_details(task, split, predicted))


def write_file(folder: str, name: str, task: str, split: str, content: dict[str, Any]) -> None:
    """Writes `NAME.json`; escaped, because texts may hold what no UTF-8 file can."""
    content = {"task": task, "split": split, **content}
    storage.write_text(os.path.join(folder, f"{name}.json"), json.dumps(content, indent=1) + "\n")


def split_details(task: ClassificationData, split: str, predicted: np.ndarray) -> dict[str, Any]:
    """The details of one split whose labels are known, at least of some rows."""
    truth, examples = task.labels[split], task.examples[split]
    assert truth is not None
    rows = np.flatnonzero(is_known(truth))
    truth, predicted = truth[rows], predicted[rows]
    texts, lines = examples.texts(), examples.places

    def said_of(row: int) -> dict[str, Any]:
        cut = [truncate(text, LONGEST_TEXT) for text in texts[rows[row]]]
        return {"line": int(lines[rows[row]][1]), "texts": cut}

    labels = [truncate(label, LONGEST_LABEL) for label in task.labels_in_order]
    if task.task.regression:
        found = score_details(truth, predicted)
    elif task.task.multi_label:
        found = label_details(labels, truth, predicted)
    else:
        found = class_details(labels, truth, predicted)
    shown = [said_of(error.pop("row")) | error for error in found.pop("shown")]
    return {"examples": len(rows), **found, "shown": shown}


def class_details(labels: Sequence[str], ids: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Of one label an example: calibration of the likeliest, and where that is wrong.

    Args:
      labels: strings.
      ids: int `[examples]`, the true ones.
      predicted: probabilities, float `[examples, labels]`.
    """
    best, likeliest = predicted.argmax(-1), predicted.max(-1)
    wrong = np.flatnonzero(best != ids)
    shown = [
        {
            "row": int(i),
            "true": labels[ids[i]],
            "predicted": labels[best[i]],
            "probability": _rounded(likeliest[i]),
            "probability_of_true": _rounded(predicted[i, ids[i]]),
        }
        for i in _largest(wrong, likeliest)
    ]
    calibrated = calibration(likeliest, best == ids)
    return {"kind": "classes", "calibration": calibrated, "errors": len(wrong), "shown": shown}


def label_details(
    labels: Sequence[str], truth: np.ndarray, predicted: np.ndarray
) -> dict[str, Any]:
    """Of any number of labels: each label of each example is one decision, right or wrong.

    Args:
      labels: strings.
      truth: `[examples, labels]`, 1 for each that the example has.
      predicted: probabilities, float `[examples, labels]`.
    """
    has, says = truth > 0.5, predicted >= SURE
    wrong = np.flatnonzero(has != says)
    shown = []
    for i in _largest(wrong, np.abs(predicted - 0.5).ravel()):
        row, label = divmod(int(i), len(labels))
        shown.append(
            {
                "row": row,
                "true": f"{'' if has[row, label] else 'not '}{labels[label]}",
                "predicted": f"{'' if says[row, label] else 'not '}{labels[label]}",
                "probability": _rounded(predicted[row, label]),
            }
        )
    per_label = [
        {"label": label, "missed": int(missed), "said_wrongly": int(wrongly), "right": int(right)}
        for label, missed, wrongly, right in zip(
            labels[:MOST_LABELS],
            (has & ~says).sum(0),
            (~has & says).sum(0),
            (has & says).sum(0),
            strict=False,
        )
    ]
    return {
        "kind": "labels",
        "calibration": calibration(predicted.ravel(), has.ravel()),
        "errors": len(wrong),
        "decisions": has.size,
        "per_label": per_label,
        "shown": shown,
    }


def score_details(truth: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Of scores: some points, evenly over the file, and the largest residuals.

    Args:
      truth, predicted: float `[examples]`.
    """
    residuals = predicted.astype(np.float64) - truth
    chosen = np.unique(np.linspace(0, len(truth) - 1, MOST_POINTS).astype(int))
    shown = [
        {"row": int(i), "true": _rounded(truth[i]), "predicted": _rounded(predicted[i])}
        for i in _largest(np.arange(len(truth)), np.abs(residuals))
    ]
    return {
        "kind": "scores",
        "mean_residual": _rounded(residuals.mean()),
        "mean_absolute_residual": _rounded(np.abs(residuals).mean()),
        "points": [[_rounded(truth[i]), _rounded(predicted[i])] for i in chosen],
        "shown": shown,
    }


def _largest(rows: np.ndarray, measure: np.ndarray) -> np.ndarray:
    """Of some rows those with the largest measure, largest first, equal ones in their order."""
    chosen: np.ndarray = rows[np.argsort(-measure[rows], kind="stable")][:MOST_ERRORS]
    return chosen


def _rounded(value: Any) -> float:
    return float(f"{float(value):.6g}")
