"""The data of a task of one or two texts: examples, labels and `Features` of each split."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import Features
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.folds import Fold
from adapter_bert_tf.data.frozen_outputs import FrozenOutputs
from adapter_bert_tf.data.on_disk.batches import TrainingRows
from adapter_bert_tf.data.on_disk.stored_table import StoredTable
from adapter_bert_tf.data.splits import stratified_subset
from adapter_bert_tf.runners.multitask.data import TaskPosition
from adapter_bert_tf.task_types import TableType, table_type
from adapter_bert_tf.task_types.table_type import Scale
from adapter_bert_tf.tasks import OWN, Task, role
from adapter_bert_tf.tasks.own import DEV_SHARE, format_settings


@dataclasses.dataclass(frozen=True)
class StoredRows:
    """Training examples on the disk.

    Args:
      table: their rows.
      labels: encoded label of each of its label cells; of scores the lowest and the highest.
    """

    table: StoredTable
    labels: np.ndarray

    @property
    def scale(self) -> Scale | None:
        """Scale of the scores; None for labels."""
        scores = self.table.facts.scores
        return Scale(scores.mean, scores.deviation) if scores else None

    @property
    def training_rows(self) -> TrainingRows:
        """The rows to train on, with standardized scores."""
        scale, labels = self.scale, self.labels
        if scale is None:
            return TrainingRows(self.table, lambda numbers: labels[numbers])
        return TrainingRows(self.table, lambda bits: scale.standardize(bits.view("<f4")))


@dataclasses.dataclass(frozen=True)
class ClassificationData:
    """The data of a task of one or two texts; see `TaskData`.

    Args:
      task: with known labels.
      examples: dict from split to its examples.
      labels: dict from split to encoded labels, or None if they are hidden.
      features: dict from split to its features.
      split_seed: of the random split; None if the data comes with a split.
      max_seq_length: of an input, in word pieces.
      position: among several tasks; None for a task that is trained alone.
      adapter_name: name of the task in an adapter of its own; None for the task's name.
      fold: which part of the training data is the development set, or None.
      frozen: outputs of frozen layers for the training examples; None if they are not cached.
      stored: training examples on the disk, which then are not in `examples`, `labels` and
        `features`; None if they are in memory.
    """

    task: Task
    examples: dict[str, Examples]
    labels: dict[str, np.ndarray | None]
    features: dict[str, Features]
    split_seed: int | None
    max_seq_length: int
    position: TaskPosition | None = None
    adapter_name: str | None = None
    fold: Fold | None = None
    frozen: FrozenOutputs | None = None
    stored: "StoredRows | None" = None

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.position.name if self.position else self.task.name

    @property
    def count(self) -> int:
        """Number of training examples."""
        return len(self.stored.table if self.stored else self.examples.get("train", ()))

    @property
    def metric(self) -> str:
        """Key, in the results, of the metric to choose by."""
        return f"{self.prefix('eval')}_{self.task.metrics[0]}"

    def prefix(self, kind: str) -> str:
        """Returns the prefix of results: `eval`, or among several tasks `eval_TASK`."""
        return f"{kind}_{self.position.name}" if self.position else kind

    @property
    def file_prefix(self) -> str:
        """Prefix of result files: `TASK_` among several tasks."""
        return f"{self.position.name}_" if self.position else ""

    def split_title(self, split: str) -> str:
        """Returns a split's name in messages; among several tasks it contains the task's."""
        return f"{self.name} {split}" if self.position else split

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
        """Scale of the training scores; None for labels, or without training data."""
        if self.stored:
            return self.stored.scale
        if "train" not in self.features:
            return None
        return self.task_type.scale(self.features["train"].labels.numpy())

    @functools.cached_property
    def training_features(self) -> Features:
        """Features to train on, with standardized scores."""
        features = dataclasses.replace(self.features["train"], frozen=self.frozen)
        if self.scale is None:
            return features
        scores = self.scale.standardize(features.labels.numpy())
        return dataclasses.replace(features, labels=tf.constant(scores))

    def inputs(self, split: str) -> Features:
        """Returns the features of a split; among several tasks each row has its task id."""
        features = self.features[split]
        if self.position is None:
            return features
        numbers = np.full(len(features), self.position.number, np.int32)
        return dataclasses.replace(features, task_ids=numbers)

    def with_dev_subset(self, most: int, seed: int) -> "ClassificationData":
        """Returns the data with at most `most` development examples, a stratified subset."""
        examples, labels, features = dict(self.examples), dict(self.labels), dict(self.features)
        for split in (name for name in features if role(name) == "dev"):
            rows = self._subset(split, most, seed)
            examples[split] = examples[split].take(rows)
            features[split] = features[split].take(rows)
            encoded = labels[split]
            labels[split] = None if encoded is None else encoded[rows]
        return dataclasses.replace(self, examples=examples, labels=labels, features=features)

    def _subset(self, split: str, most: int, seed: int) -> list[int]:
        """Returns the numbers of the examples of a subset, with known labels if there are more."""
        cells: Sequence[str | None] = self.examples[split].labels or ()
        known = [i for i, cell in enumerate(cells) if cell is not None]
        if most >= len(known):
            return list(range(len(self.examples[split])))
        strata = [self.task_type.stratum(str(cells[i])) for i in known]
        return [known[i] for i in stratified_subset(strata, most, seed)]

    def adapter_config(self) -> dict[str, Any]:
        """Returns the description of the task in a saved adapter."""
        name = self.name if self.position else self.adapter_name or self.name
        return {
            "task": self.task.name,
            "head": self.task_type.file_head,
            "labels": list(self.task.labels or ()),
            "regression": self.task_type.file_regression,
            "split_seed": self.split_seed,
            "inputs": {"texts": self.task.num_texts, "max_seq_length": self.max_seq_length},
            **({"fold": dataclasses.asdict(self.fold)} if self.fold else {}),
            **({"name": name} if name != self.task.name else {}),
            **({"table": self._table_settings()} if self.task.name == OWN else {}),
            **self._dev_share(),
            **({"dev_by_hash": True} if self.stored and self.stored.table.facts.dev else {}),
        }

    def _dev_share(self) -> dict[str, float]:
        """Returns the share of the training data that a user's table leaves out, if not usual."""
        share = self.task.dev_share or 0.0
        is_unusual = self.task.name == OWN and not self.fold and share != DEV_SHARE
        return {"dev_share": share} if is_unusual else {}

    def record(self) -> dict[str, Any]:
        """Returns the description of the data in `run.json`."""
        facts = self.stored and self.stored.table.facts
        counts = {"train": facts.count} if facts else {}
        cut = {"train": facts.cut / facts.count} if facts else {}
        return {
            "labels": list(self.task.labels or ()),
            "data_sha256": self.digests,
            "examples": counts | {split: len(part) for split, part in self.examples.items()},
            "share_cut": cut
            | {split: float(part.cut.mean()) for split, part in self.features.items()},
        }

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """Dict from split to the digest of its examples."""
        train = {"train": self.stored.table.facts.sha256} if self.stored else {}
        return train | {split: part.digest() for split, part in self.examples.items()}

    def _table_settings(self) -> dict[str, Any]:
        """Returns the settings with which a table of the user's own is read."""
        source = self.task.layouts[0]["train"]
        columns = {
            "text_a_column": source.columns.text_a,
            "text_b_column": source.columns.text_b,
            "label_column": source.columns.label,
        }
        given = {name: str(column) for name, column in columns.items() if column is not None}
        type_settings = {"regression": False} | dict(self.task_type.settings)
        file_format = {"header": source.has_header} | format_settings(source)
        return given | file_format | type_settings
