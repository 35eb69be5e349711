"""Multi-label classification: any number of labels for each text or pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types import report_parts
from adapter_bert_tf.task_types.details import calibration, largest, rounded
from adapter_bert_tf.task_types.label_type import LabelType
from adapter_bert_tf.task_types.metrics import Metric, label_metric, label_table
from adapter_bert_tf.task_types.task_type import Answer
from adapter_bert_tf.tasks.task import BETWEEN_LABELS, Task

SURE = 0.5  # From this probability on an example has a label.
MOST_LABELS = 100  # In the details.


class MultiLabel(LabelType):
    """Labels with `|` between them in a cell; a sigmoid for each label."""

    name = file_head = "multi_label"
    settings: ClassVar[Mapping[str, Any]] = {"multi_label": True}
    model_options: ClassVar[Mapping[str, Any]] = {"multi_label": True}
    predicts = "any number of labels"
    several = True
    may_be_empty = True  # No label is a known answer.
    stratified = False
    # F1 over labels and examples; 0 for a label that is neither true nor predicted.
    metrics: ClassVar[Mapping[str, Metric]] = {
        "micro_f1": label_metric("f1_score", average="micro", zero_division=0.0),
        "macro_f1": label_metric("f1_score", average="macro", zero_division=0.0),
        "accuracy": label_metric("accuracy_score"),  # Of examples whose labels are all right.
    }
    own_metrics = ("micro_f1", "macro_f1", "accuracy")
    details_kind = "labels"
    report_parts = (
        report_parts.calibration(
            "probability of a label (mean of a bin)",
            "share that has the label",
            "decisions (example and label)",
        ),
        report_parts.labels,
        report_parts.errors,
    )

    def labels_in(self, cell: str) -> tuple[str, ...]:
        parts = (part.strip() for part in cell.split(BETWEEN_LABELS))
        return tuple(dict.fromkeys(part for part in parts if part))

    def renamed(self, cell: str, rename: Callable[[str], str]) -> str:
        return BETWEEN_LABELS.join(map(rename, self.labels_in(cell)))

    def encode(self, task: Task, examples: Examples) -> np.ndarray:
        """float32 `[examples, labels]`, 1 for each label of an example."""
        self.require_known(task, examples)
        cells = examples.labels or []
        labels = task.labels or ()
        encoded = np.zeros((len(cells), len(labels)), np.float32)
        for row, cell in zip(encoded, cells, strict=True):
            row[[labels.index(label) for label in self.labels_in(cell or "")]] = 1.0
        return encoded

    def is_known(self, encoded: np.ndarray) -> np.ndarray:
        return np.ones(len(encoded), bool)

    def check_training(self, task: Task, encoded: np.ndarray) -> None:
        if not task.labels or np.unique(encoded, axis=0).shape[0] < 2:
            raise InputError(
                "All examples of the training data have the same labels. There is nothing to "
                "learn. Is --label_column right?"
            )
        if lists := [label for label in task.labels if label[0] + label[-1] == "[]"]:
            raise InputError(
                f"--multi_label separates labels by {BETWEEN_LABELS!r}, or takes columns of 0 and "
                f"1 (--label_column=A,B). Received a list in a cell: {preview(lists[0])}"
            )
        if len(task.labels) < 2:
            raise InputError(
                "--multi_label needs two labels or more. Received: "
                f"{preview(task.labels[0])} alone. Give the other examples a label too, without it."
            )

    def shares(self, logits: Any) -> tf.Tensor:
        return tf.sigmoid(logits)

    def decide(self, predicted: np.ndarray) -> np.ndarray:
        """int `[examples, labels]`, 1 for each label that is predicted."""
        return (predicted >= SURE).astype(int)

    def metric(self, name: str, encoded: np.ndarray, predicted: np.ndarray) -> float:
        return super().metric(name, encoded.astype(int), predicted)

    def loss(self, encoded: np.ndarray, predicted: np.ndarray) -> float:
        """Mean binary cross-entropy in nats."""
        exact = predicted.astype("float64")
        of_truth = np.where(encoded.astype(int), predicted, 1.0 - exact)
        return float(-np.log(np.clip(of_truth, 1e-15, 1.0)).mean())

    def right(self, encoded: np.ndarray, predicted: np.ndarray) -> np.ndarray | None:
        return ((predicted >= SURE) == (encoded > 0)).all(-1)

    def details(
        self, labels: Sequence[str], encoded: np.ndarray, predicted: np.ndarray
    ) -> dict[str, Any]:
        """Each label of each example is one decision, right or wrong."""
        has, chosen = encoded > 0.5, predicted >= SURE
        wrong = np.flatnonzero(has != chosen)
        shown = []
        for i in largest(wrong, np.abs(predicted - 0.5).ravel()):
            row, label = divmod(int(i), len(labels))
            shown.append(
                {
                    "row": row,
                    "true": f"{'' if has[row, label] else 'not '}{labels[label]}",
                    "predicted": f"{'' if chosen[row, label] else 'not '}{labels[label]}",
                    "probability": rounded(predicted[row, label]),
                }
            )
        counts = {
            "missed": (has & ~chosen).sum(0).tolist(),
            "said_wrongly": (~has & chosen).sum(0).tolist(),
            "right": (has & chosen).sum(0).tolist(),
        }
        per_label = [
            {"label": label, **{name: column[i] for name, column in counts.items()}}
            for i, label in enumerate(labels[:MOST_LABELS])
        ]
        return {
            "kind": self.details_kind,
            "calibration": calibration(predicted.ravel(), has.ravel()),
            "errors": len(wrong),
            "decisions": has.size,
            "per_label": per_label,
            "shown": shown,
        }

    def class_table(
        self, labels: Sequence[str], encoded: np.ndarray, predicted: np.ndarray
    ) -> tuple[str, list[list[str]]] | None:
        return "Labels of {}:", label_table(labels, encoded.astype(int), self.decide(predicted))

    def shown(self, labels: Sequence[str], predicted: np.ndarray) -> list[str]:
        sets = [[labels[i] for i in np.flatnonzero(row).tolist()] for row in self.decide(predicted)]
        return [BETWEEN_LABELS.join(names) for names in sets]

    def answer(self, probabilities: Mapping[str, float]) -> Answer:
        sure = [label for label, share in probabilities.items() if share >= SURE]
        return {"labels": sure, "probabilities": probabilities}

    def served_label(self, classes: tf.Tensor, shares: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        chosen = tf.ragged.boolean_mask(tf.broadcast_to(classes, tf.shape(shares)), shares >= SURE)
        return tf.strings.reduce_join(chosen, -1, separator=BETWEEN_LABELS)
