"""The data of a task of one or two texts: its examples, labels and `Features` of each split."""

import dataclasses
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import Features
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.folds import Fold
from adapter_bert_tf.data.frozen_outputs import FrozenOutputs
from adapter_bert_tf.task_types import TableType, table_type
from adapter_bert_tf.task_types.table_type import Scale
from adapter_bert_tf.tasks import OWN, Task


@dataclasses.dataclass(frozen=True)
class Among:
    """The place of a task among several that are trained together.

    Args:
      name: by which its results and its adapter are called.
      number: which its rows say.
      columns: of the model's outputs, those that are the task's.
    """

    name: str
    number: int
    columns: slice


@dataclasses.dataclass(frozen=True)
class ClassificationData:
    """The data of a task of one or two texts.

    Args:
      task: `Task`, its labels known.
      examples: dict from split to `Examples`.
      labels: dict from split to encoded labels, or None where hidden.
      features: dict from split to `Features`.
      split_seed: of the random division; None if the publishers made one.
      max_seq_length: of an input, in word pieces.
      among: its place among several tasks; None where it is the only one.
      called: what its adapter calls it, alone; None for the task's name.
      fold: which part of the training data is the development set, or None.
      frozen: what frozen layers give for the training examples, or None: it is not known.
    """

    task: Task
    examples: dict[str, Examples]
    labels: dict[str, np.ndarray | None]
    features: dict[str, Features]
    split_seed: int | None
    max_seq_length: int
    among: Among | None = None
    called: str | None = None
    fold: Fold | None = None
    frozen: FrozenOutputs | None = None

    @property
    def name(self) -> str:
        """Of the task."""
        return self.among.name if self.among else self.task.name

    @property
    def count(self) -> int:
        """Number of training examples."""
        return len(self.examples.get("train", []))

    @property
    def metric(self) -> str:
        """Key, in the results, of the metric to choose by."""
        return f"{self.prefix('eval')}_{self.task.metrics[0]}"

    def prefix(self, kind: str) -> str:
        """What the names of its results begin with: `eval`, or of several tasks `eval_TASK`."""
        return f"{kind}_{self.among.name}" if self.among else kind

    def shown(self, split: str) -> str:
        """What messages call a split: of several tasks with the name of the task."""
        return f"{self.name} {split}" if self.among else split

    @property
    def task_type(self) -> TableType:
        """The type of the task."""
        return table_type(self.task.task_type)

    @property
    def labels_in_order(self) -> tuple[str, ...]:
        """Label strings in the order of their ids, if the type has labels."""
        return self.task.labels or ()

    @functools.cached_property
    def scale(self) -> Scale | None:
        """Of the training scores; None for labels, or if there is no training data."""
        if "train" not in self.features:
            return None
        return self.task_type.scale(self.features["train"].labels.numpy())

    @functools.cached_property
    def training_features(self) -> Features:
        """What is trained on; scores are standardized."""
        features = dataclasses.replace(self.features["train"], frozen=self.frozen)
        if self.scale is None:
            return features
        scores = self.scale.standardize(features.labels.numpy())
        return dataclasses.replace(features, labels=tf.constant(scores))

    def asked(self, split: str) -> Features:
        """What the model is asked of a split; of several tasks each row says which it is of."""
        features = self.features[split]
        if self.among is None:
            return features
        numbers = np.full(len(features), self.among.number, np.int32)
        return dataclasses.replace(features, task_ids=numbers)

    def adapter_config(self) -> dict[str, Any]:
        """What a saved adapter says of its task."""
        name = self.name if self.among else self.called or self.name
        return {
            "task": self.task.name,
            "head": self.task_type.file_head,
            "labels": list(self.task.labels or ()),
            "regression": self.task_type.file_regression,
            "split_seed": self.split_seed,
            "inputs": {"texts": self.task.num_texts, "max_seq_length": self.max_seq_length},
            **({"fold": dataclasses.asdict(self.fold)} if self.fold else {}),
            **({"name": name} if name != self.task.name else {}),
            **({"table": self._table()} if self.task.name == OWN else {}),
        }

    def record(self) -> dict[str, Any]:
        """What `run.json` says of the data."""
        return {
            "labels": list(self.task.labels or ()),
            "data_sha256": self.digests,
            "examples": {split: len(part) for split, part in self.examples.items()},
            "share_cut": {split: float(part.cut.mean()) for split, part in self.features.items()},
        }

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """Dict from split to the digest of its examples."""
        return {split: part.digest() for split, part in self.examples.items()}

    def _table(self) -> dict[str, Any]:
        """How a table of the user's own is read, by the settings that choose it."""
        source = self.task.layouts[0]["train"]
        columns = {
            "text_a_column": source.columns.text_a,
            "text_b_column": source.columns.text_b,
            "label_column": source.columns.label,
        }
        given = {name: str(column) for name, column in columns.items() if column is not None}
        chosen = {"header": source.has_header, "regression": False} | dict(self.task_type.settings)
        return given | chosen
