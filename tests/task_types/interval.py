"""A toy task type: a share from 0 to 1, written as a fraction in the table (`3/4`)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tf_keras

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.report_blocks import Note, ScatterPlot
from adapter_bert_tf.task_types.details import largest, rounded
from adapter_bert_tf.task_types.table_type import TableType

CLOSE = 0.25  # Predictions that are off by less count as right.


@tf_keras.utils.register_keras_serializable(package="tests")
class ShareModel(Classifier):
    """One logit; its sigmoid is the share."""

    def training_loss(self):
        return tf_keras.losses.BinaryCrossentropy(from_logits=True)


def scatter(details, n):
    """Predicted by true shares."""
    labels = ("true share", "predicted share")
    caption = f"Predicted by true shares. {n}."
    return [ScatterPlot("shares", "Scatter of shares", caption, *labels, details["points"])]


def farthest(details, n):
    """The example that is farthest off."""
    first = details["shown"][0]
    return [Note(f"Farthest off: {first['texts'][0]}, by {first['off']}. {n}.")]


class Interval(TableType):
    """A share for each text."""

    name = file_head = "interval"
    settings: ClassVar[Mapping[str, Any]] = {"task_type": "interval"}
    predicts = "a share"
    labels = ()
    stratified = False
    metrics: ClassVar[Mapping[str, Any]] = {
        "close": lambda true, predicted: np.mean(np.abs(true - predicted) < CLOSE),
        "median_error": lambda true, predicted: np.median(np.abs(true - predicted)),
    }
    own_metrics = ("close", "median_error")
    raw_outputs = "shares"
    details_kind = "shares"
    loss_unit = "cross-entropy of shares, nats"
    report_parts = (scatter, farthest)

    # The head.

    def new_model(self, encoder, outputs):
        return ShareModel(encoder, outputs, dropout=encoder.config["output_dropout"])

    def num_outputs(self, labels):
        return 1

    # Labels of a table.

    def labels_in(self, cell: str) -> tuple[str, ...]:
        return ()

    def stratum(self, cell: str) -> str:
        return ""

    def looks_like_a_label(self, cell: str, others: Collection[str]) -> bool:
        return "/" in cell

    def summary(self, cells: Sequence[str]) -> str:
        return f"{len(set(cells))} different fractions"

    def encode(self, task, examples):
        rows = zip(examples.labels, examples.places, strict=True)
        return np.array([parse(cell, place) for cell, place in rows], np.float32)

    def is_known(self, encoded):
        return ~np.isnan(encoded)

    def check_training(self, task, encoded):
        if np.ptp(encoded) == 0:
            raise InputError("All shares are the same. There is nothing to learn.")

    # Evaluation.

    def predictions(self, logits, scale=None):
        return tf.sigmoid(logits[:, 0]).numpy()

    def decide(self, predicted):
        return predicted

    def loss(self, encoded, predicted):
        return float(tf.reduce_mean(tf_keras.losses.binary_crossentropy(encoded, predicted)))

    def right(self, encoded, predicted):
        return np.abs(encoded - predicted) < CLOSE

    # Result files.

    def details(self, labels, encoded, predicted):
        off = np.abs(encoded - predicted)
        shown = [{"row": int(i), "off": rounded(off[i])} for i in largest(np.arange(len(off)), off)]
        points = [[rounded(x), rounded(y)] for x, y in zip(encoded, predicted, strict=True)]
        return {"kind": self.details_kind, "points": points, "shown": shown}

    def shown(self, labels, predicted):
        return [f"{share:.2f}" for share in predicted]

    # Answers and serving.

    def answers(self, outputs, config):
        shares = self.predictions(np.stack(outputs)).tolist()
        return [{"share": share, "level": "high" if share > 0.5 else "low"} for share in shares]

    def columns(self, config):
        return ["share", "level"]

    def served(self, logits, config):
        share = tf.sigmoid(logits[:, 0])
        return {"share": share, "level": tf.where(share > 0.5, "high", "low")}


def parse(cell: str | None, place: tuple[str, int]) -> float:
    """The share of a cell; NaN where there is none. Raises `InputError`."""
    if cell is None:
        return float("nan")
    part, _, whole = cell.partition("/")
    if not (part.isdecimal() and whole.isdecimal() and int(part) <= int(whole) > 0):
        raise InputError(f"{place[0]}, line {place[1]}: a share is like 3/4. Received: {cell!r}")
    return int(part) / int(whole)
