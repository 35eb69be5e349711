"""The interface of types whose labels are strings, each with a logit and a probability."""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.serving_texts import Config, Tensors
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types.table_type import Scale, TableType
from adapter_bert_tf.task_types.task_type import Answer
from adapter_bert_tf.tasks.task import Task


class LabelType(TableType):
    """A type whose predictions are probabilities of labels."""

    @abc.abstractmethod
    def shares(self, logits: Any) -> tf.Tensor:
        """Probabilities of the labels, `[examples, labels]`."""

    def numeric_outputs(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"logits": logits, "probabilities": self.shares(logits)}

    @abc.abstractmethod
    def answer(self, probabilities: Mapping[str, float]) -> Answer:
        """The answer that probabilities of the labels stand for."""

    @abc.abstractmethod
    def served_label(self, classes: tf.Tensor, shares: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """The label of each row as one string."""

    def require_known(self, task: Task, examples: Examples) -> None:
        """Checks that a task has all labels of its examples. Raises `InputError`."""
        known = set(task.labels or ())
        for cell, (path, line) in zip(examples.labels or (), examples.places, strict=True):
            for label in () if cell is None else self.labels_in(cell):
                if label not in known:
                    raise InputError(
                        f"{path}, line {line}: unknown label {preview(label)}. The task's labels, "
                        f"those of its training data, are {_format_labels(task.labels or ())}."
                    )

    def predictions(self, logits: np.ndarray, scale: Scale | None = None) -> np.ndarray:
        return self.shares(logits).numpy()

    def answers(self, outputs: Sequence[Any], config: Config) -> list[Answer]:
        """Dicts with the label or labels, and `probabilities`, a dict from each label."""
        labels = config["labels"]
        logits = np.stack([row[: len(labels)] for row in outputs])
        rows = self.shares(logits).numpy().tolist()
        return [self.answer(dict(zip(labels, row, strict=True))) for row in rows]

    def columns(self, config: Config) -> list[str]:
        return ["label", *(f"probability_{label}" for label in config["labels"])]

    def served(self, logits: tf.Tensor, config: Config) -> Tensors:
        """`label` string `[batch]`; `probabilities`, `logits` and `classes`, `[batch, labels]`."""
        classes, shares = tf.constant(config["labels"]), self.shares(logits)
        return {
            "label": self.served_label(classes, shares, logits),
            "probabilities": shares,
            "logits": logits,
            "classes": tf.tile(classes[tf.newaxis], [tf.shape(logits)[0], 1]),
        }


def _format_labels(labels: Collection[str]) -> str:
    first = ", ".join(preview(label, 60) for label in list(labels)[:30])
    return f"[{first}{', ...' if len(labels) > 30 else ''}]"
