"""Regression: a score for each text or pair."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from absl import logging

from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.serving_texts import Config, Tensors
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types import report_parts
from adapter_bert_tf.task_types.details import largest, rounded
from adapter_bert_tf.task_types.metrics import Metric, correlation
from adapter_bert_tf.task_types.table_type import Scale, TableType
from adapter_bert_tf.task_types.task_type import Answer
from adapter_bert_tf.tasks.task import Task

LARGEST_SCORE = 1e30  # The square of a larger one may overflow a float32.
# `float` also takes `1_0` and the digits of other scripts, which are hardly meant as scores.
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
MOST_POINTS = 500  # In the details.


class Regression(TableType):
    """A score for each example; the model learns it standardized."""

    name = "regression"
    file_head, file_regression = "classification", True
    settings: ClassVar[Mapping[str, Any]] = {"regression": True}
    predicts = "a score"
    labels = ()
    model_options: ClassVar[Mapping[str, Any]] = {"regression": True}
    mixes = True
    stratified = False
    metrics: ClassVar[Mapping[str, Metric]] = {
        "pearson": correlation("pearsonr"),
        "spearman": correlation("spearmanr"),
    }
    own_metrics = ("spearman", "pearson")
    raw_outputs = "scores"
    details_kind = "scores"
    loss_unit = "squared error, standardized"
    dev_loss_unit = "squared error of the scores"
    report_parts = (report_parts.scores, report_parts.residuals)

    def num_outputs(self, labels: Sequence[str]) -> int:
        return 1

    def labels_in(self, cell: str) -> tuple[str, ...]:
        return ()

    def stratum(self, cell: str) -> str:
        return ""

    def looks_like_a_label(self, cell: str, others: Collection[str]) -> bool:
        try:
            return float(cell) is not None
        except ValueError:
            return False

    def summary(self, cells: Sequence[str]) -> str:
        scores = sorted(map(float, cells))
        return f"{scores[0]:g} to {scores[-1]:g}, median {scores[len(scores) // 2]:g}"

    def encode(self, task: Task, examples: Examples) -> np.ndarray:
        """float32 `[examples]`; NaN where there is no score."""
        rows = zip(examples.labels or (), examples.places, strict=True)
        scores = [math.nan if cell is None else parse_score(cell, place) for cell, place in rows]
        return np.array(scores, np.float32)

    def is_known(self, encoded: np.ndarray) -> np.ndarray:
        return ~np.isnan(encoded)

    def check_training(self, task: Task, encoded: np.ndarray) -> None:
        if len(np.unique(encoded)) < 2:
            raise InputError(
                f"The training data has only one score: {encoded[0]:g}. There is nothing to "
                "learn. Is --label_column right, and --max_train_examples large enough?"
            )

    def scale(self, encoded: np.ndarray) -> Scale | None:
        return Scale(float(encoded.mean()), float(encoded.std()))

    def predictions(self, logits: np.ndarray, scale: Scale | None = None) -> np.ndarray:
        scores: np.ndarray = logits[:, 0]
        return scores * scale.deviation + scale.mean if scale else scores

    def decide(self, predicted: np.ndarray) -> np.ndarray:
        """The scores themselves."""
        return predicted

    def loss(self, encoded: np.ndarray, predicted: np.ndarray) -> float:
        """Mean squared error."""
        return float(np.mean(np.square(encoded - predicted.astype("float64"))))

    def is_constant(self, predicted: np.ndarray) -> bool:
        spread = np.ptp(predicted) / max(1.0, np.abs(predicted).max())
        return len(predicted) > 1 and bool(spread <= 1e-6)

    def warn_of_few(self, what: str, encoded: np.ndarray) -> None:
        if len(encoded) < 2:
            logging.warning(f"{what} has one score: its correlations are 0.")

    def details(
        self, labels: Sequence[str], encoded: np.ndarray, predicted: np.ndarray
    ) -> dict[str, Any]:
        """Some points, evenly over the file, and the largest residuals."""
        residuals = predicted.astype(np.float64) - encoded
        chosen = np.unique(np.linspace(0, len(encoded) - 1, MOST_POINTS).astype(int))
        shown = [
            {"row": int(i), "true": rounded(encoded[i]), "predicted": rounded(predicted[i])}
            for i in largest(np.arange(len(encoded)), np.abs(residuals))
        ]
        return {
            "kind": self.details_kind,
            "mean_residual": rounded(residuals.mean()),
            "mean_absolute_residual": rounded(np.abs(residuals).mean()),
            "points": [[rounded(encoded[i]), rounded(predicted[i])] for i in chosen],
            "shown": shown,
        }

    def shown(self, labels: Sequence[str], predicted: np.ndarray) -> list[str]:
        return [f"{score:.3f}" for score in predicted]

    def written(self, task: Task, predicted: np.ndarray) -> list[str]:
        # With a range as GLUE writes scores; others with the digits that float32 has.
        digits = ".7g" if task.score_range is None else ".3f"
        return [format(score, digits) for score in task.clip(predicted)]

    def answers(self, outputs: Sequence[Any], config: Config) -> list[Answer]:
        """Dicts with `score`."""
        return [{"score": float(row[0])} for row in outputs]

    def columns(self, config: Config) -> list[str]:
        return ["score"]

    def served(self, logits: tf.Tensor, config: Config) -> Tensors:
        """`score`, float32 `[batch]`."""
        return {"score": logits[:, 0]}


def parse_score(cell: str, place: tuple[str, int]) -> float:
    """The number in a cell. Raises `InputError` with its file and line."""
    score = float(cell) if NUMBER.fullmatch(cell) else math.nan
    if not abs(score) <= LARGEST_SCORE:  # Also true for NaN.
        raise InputError(
            f"{place[0]}, line {place[1]}: the score must be a number, and at most "
            f"{LARGEST_SCORE:g}. Received: {preview(cell)}"
        )
    return score
