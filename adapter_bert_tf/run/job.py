"""A run in progress."""

import dataclasses
from typing import Any

import tensorflow as tf

from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.run.plan import Plan


@dataclasses.dataclass
class Job:
    """A run in progress.

    Args:
      plan: `Plan`.
      model: with the base's weights, and the saved adapter's if there is one.
      trained: dict from common name to variable.
      standardized: whether the model's scores are still standardized, in training.
      record: for `run.json`.
      evaluated: what an evaluation leaves for predictions and for its details.
    """

    plan: Plan
    model: EncoderModel
    trained: dict[str, tf.Variable]
    standardized: bool = False
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    evaluated: dict[str, Any] = dataclasses.field(default_factory=dict)
