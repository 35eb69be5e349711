"""Classification: one of several labels for each text or pair."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from absl import logging

from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.losses import Loss, cross_entropy
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types import report_parts
from adapter_bert_tf.task_types.details import calibration, largest, rounded
from adapter_bert_tf.task_types.label_type import LabelType
from adapter_bert_tf.task_types.metrics import Metric, class_table, label_metric
from adapter_bert_tf.task_types.task_type import Answer
from adapter_bert_tf.tasks.task import BETWEEN_LABELS, Task

BALANCED = "balanced"
UNKNOWN = -1  # Id of a row of a test file whose label is not known.
FEWEST_SCORES = 3  # `0.0` and `1.0` are the classes of a column of numbers with gaps.


class Classification(LabelType):
    """One label for each example; a softmax over the labels."""

    name = file_head = "classification"
    predicts = "classes"
    mixes = True
    metrics: ClassVar[Mapping[str, Metric]] = {
        "accuracy": label_metric("accuracy_score"),
        "f1": label_metric("f1_score"),
        "macro_f1": label_metric("f1_score", average="macro"),
        "mcc": label_metric("matthews_corrcoef"),
    }
    own_metrics = ("accuracy", "macro_f1")
    details_kind = "classes"
    report_parts = (
        report_parts.calibration(
            "probability of the answer (mean of a bin)", "share of right answers", "examples"
        ),
        report_parts.errors,
    )

    def head_summary(self, labels: Sequence[str]) -> str:
        more = "..." if len(labels) > 5 else ""
        return f"{len(labels)} labels ({', '.join(labels[:5])}{more})"

    def encode(self, task: Task, examples: Examples) -> np.ndarray:
        """int32 `[examples]`, label ids; `UNKNOWN` where there is none."""
        self.require_known(task, examples)
        ids = {label: i for i, label in enumerate(task.labels or ())} | {None: UNKNOWN}
        return np.array([ids[label] for label in examples.labels or ()], np.int32)

    def is_known(self, encoded: np.ndarray) -> np.ndarray:
        return encoded != UNKNOWN

    def check_training(self, task: Task, encoded: np.ndarray) -> None:
        labels, used = task.labels or (), np.unique(encoded)
        if len(used) < 2:
            raise InputError(
                f"The training data has only one label: {labels[encoded[0]]!r}. There is nothing "
                "to learn. Is --label_column right, and --max_train_examples large enough?"
            )
        if missing := len(labels) - len(used):
            logging.warning(f"{missing} of {len(labels)} labels have no training example.")

    def check_inferred(self, labels: Sequence[str]) -> None:
        if _may_be_scores(labels):
            logging.warning(
                f"The labels {preview(list(labels[:5]))} are numbers, and count as classes. If "
                "they are scores: --regression."
            )
        if set(labels) > {"-1", "0", "1"}:
            logging.warning(
                "-1 counts as a class. Where it stands for a label that is not known, as in "
                "exports of `datasets`, leave such rows out."
            )
        if joined := [label for label in labels if _may_be_several(label)]:
            logging.warning(
                f"{preview(joined[0], 80)} counts as one label. If {BETWEEN_LABELS} separates "
                "labels, set --multi_label."
            )

    def weighted_loss(
        self,
        weights: str | None,
        smoothing: float,
        labels: Sequence[str],
        encoded: np.ndarray,
        counts: np.ndarray | None = None,
    ) -> Loss | None:
        if not (weights or smoothing):
            return None
        return cross_entropy(parse_weights(weights, labels, encoded, counts), smoothing)

    def shares(self, logits: Any) -> tf.Tensor:
        return tf.nn.softmax(logits)

    def decide(self, predicted: np.ndarray) -> np.ndarray:
        """Label ids `[examples]`."""
        return predicted.argmax(-1)

    def loss(self, encoded: np.ndarray, predicted: np.ndarray) -> float:
        """Mean cross-entropy in nats."""
        from sklearn import metrics

        exact = predicted.astype("float64")  # log_loss wants rows that sum to one.
        exact = exact / exact.sum(-1, keepdims=True)
        return float(metrics.log_loss(encoded, exact, labels=list(range(exact.shape[-1]))))

    def fitting_metrics(self, labels: Sequence[str]) -> list[str]:
        """F1 is that of one class, where there are two."""
        return [name for name in self.metrics if name != "f1" or len(labels) == 2]

    def right(self, encoded: np.ndarray, predicted: np.ndarray) -> np.ndarray | None:
        return self.decide(predicted) == encoded

    def details(
        self, labels: Sequence[str], encoded: np.ndarray, predicted: np.ndarray
    ) -> dict[str, Any]:
        """Calibration of the likeliest label, and the errors that the model was surest of."""
        best, likeliest = predicted.argmax(-1), predicted.max(-1)
        wrong = np.flatnonzero(best != encoded)
        shown = [
            {
                "row": int(i),
                "true": labels[encoded[i]],
                "predicted": labels[best[i]],
                "probability": rounded(likeliest[i]),
                "probability_of_true": rounded(predicted[i, encoded[i]]),
            }
            for i in largest(wrong, likeliest)
        ]
        calibrated = calibration(likeliest, best == encoded)
        counts = {"calibration": calibrated, "errors": len(wrong)}
        return {"kind": self.details_kind, **counts, "shown": shown}

    def class_table(
        self, labels: Sequence[str], encoded: np.ndarray, predicted: np.ndarray
    ) -> tuple[str, list[list[str]]] | None:
        table = class_table(labels, encoded, self.decide(predicted))
        return "Classes of {}, and what they were taken for:", table

    def shown(self, labels: Sequence[str], predicted: np.ndarray) -> list[str]:
        return [labels[i] for i in self.decide(predicted)]

    def certainty(self, row: np.ndarray) -> str:
        return f" ({row.max():.2f})"

    def answer(self, probabilities: Mapping[str, float]) -> Answer:
        likeliest = max(probabilities, key=probabilities.__getitem__)
        return {"label": likeliest, "probabilities": probabilities}

    def served_label(self, classes: tf.Tensor, shares: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        return tf.gather(classes, tf.argmax(logits, -1))


def _may_be_scores(labels: Sequence[str]) -> bool:
    numbers = [_number(label) for label in labels]
    known = [number for number in numbers if number is not None]
    fractions = any(not number.is_integer() for number in known)
    return len(known) == len(labels) >= FEWEST_SCORES and fractions


def _number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None


def _may_be_several(label: str) -> bool:
    parts = label.split(BETWEEN_LABELS)
    return len(parts) > 1 and all(part.strip() for part in parts)


def parse_weights(
    text: str | None, labels: Sequence[str], ids: np.ndarray, counts: np.ndarray | None = None
) -> list[float]:
    """The weight of each label, from `--class_weights`; None: all count alike.

    `ids` are int `[examples]`, of the training data; with `counts` each is that of so many. If
    balanced, a label that n of N examples have weighs N / (labels n), as in scikit-learn; one
    without examples weighs 1.

    Raises `InputError` for an unknown or repeated label, or a weight that is not above 0.
    """
    if text is None:
        return [1.0] * len(labels)
    if text == BALANCED:
        sizes = np.bincount(ids, counts, len(labels))
        return [float(sizes.sum()) / (len(labels) * n) if n else 1.0 for n in sizes.tolist()]
    named = dict[str, float]()
    for part in _split_weights(text, labels):
        label, equals, number = part.rpartition("=")
        if not equals or label.strip() not in labels:
            raise InputError(
                f"--class_weights is {BALANCED} or a list LABEL=WEIGHT,... of the labels "
                f"{preview(list(labels))}. Received: {preview(part)}"
            )
        name = label.strip()
        if name in named:
            raise InputError(f"--class_weights has two weights for the label {preview(name)}.")
        named[name] = _parse_weight(number)
    return [named.get(label, 1.0) for label in labels]


def _split_weights(text: str, labels: Sequence[str]) -> list[str]:
    """Splits at commas, except those within labels."""
    known = "|".join(map(re.escape, labels))
    return re.findall(rf"(?:^|,)(\s*(?:{known})\s*=[^,=]*(?=,|$)|[^,]*)", text)


def _parse_weight(text: str) -> float:
    weight = _number(text)
    if weight is None or not 0 < weight < math.inf:
        raise InputError(f"--class_weights: a weight is above 0. Received: {preview(text)}")
    return weight
