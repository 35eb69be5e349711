"""From settings to sentences with tags, and their windows."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.batches import Features
from adapter_bert_tf.data.splits import stratified_subset
from adapter_bert_tf.data.tagging.batches import features_of
from adapter_bert_tf.data.tagging.schemes import OUTSIDE
from adapter_bert_tf.data.tagging.tag_format import TagFormat
from adapter_bert_tf.data.tagging.tagged_files import TaggedSentences, label_ids
from adapter_bert_tf.data.tagging.windows import Windows, make_windows
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.runners.multitask.data import TaskPosition
from adapter_bert_tf.runners.tagging.files import dataset_of, is_dataset
from adapter_bert_tf.task_types.tags import TAGS

TASK = "tagging"  # Of all adapters that tag; their name is that of the data.


@dataclasses.dataclass(frozen=True)
class TagData:
    """Sentences to train on, to evaluate and to predict; see `TaskData`.

    Args:
      splits: dict from `train`, `dev` or `test` to its sentences, in IOB2 or plain.
      tagged: the splits whose tags are known.
      labels: IOB2 or plain tags, in the order of their ids.
      scheme: of the training file.
      stride: word pieces that windows share.
      decoding: how tags are chosen.
      vocabulary: of the base.
      max_seq_length: of a window, in word pieces.
      adapter_name: of the data, for the adapter.
      metric_name: of the metric to choose by.
      form: how the files are read; None for a dataset of TensorFlow Datasets.
      position: among several tasks; None for a task that is trained alone.
    """

    splits: Mapping[str, TaggedSentences]
    tagged: frozenset[str]
    labels: Sequence[str]
    scheme: str
    stride: int
    decoding: str
    vocabulary: Vocabulary
    max_seq_length: int
    adapter_name: str
    metric_name: str
    form: TagFormat | None
    position: TaskPosition | None = None
    task_type = TAGS

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.position.name if self.position else TASK

    @property
    def metric(self) -> str:
        """Key, in the results, of the metric to choose by."""
        return f"{self.prefix('eval')}_{self.metric_name}"

    def prefix(self, kind: str) -> str:
        """Returns the prefix of results: `eval`, or among several tasks `eval_TASK`."""
        return f"{kind}_{self.position.name}" if self.position else kind

    @property
    def file_prefix(self) -> str:
        """Prefix of result files: `TASK_` among several tasks."""
        return f"{self.position.name}_" if self.position else ""

    @property
    def labels_in_order(self) -> Sequence[str]:
        """Labels in the order of their ids."""
        return self.labels

    @property
    def count(self) -> int:
        """Number of training examples: windows, nearly all of which are a sentence."""
        return len(self.windows["train"]) if "train" in self.splits else 0

    def adapter_config(self) -> dict[str, Any]:
        """Returns the description of the task in a saved adapter."""
        return {
            "task": TASK,
            "labels": list(self.labels),
            **TAGS.file_fields(),
            "inputs": {
                "max_seq_length": self.max_seq_length,
                "stride": self.stride,
                "scheme": self.scheme,
                "decoding": self.decoding,
            },
            **({"name": self.adapter_name} if self.adapter_name != TASK else {}),
        }

    def with_dev_subset(self, most: int, seed: int) -> "TagData":
        """Returns the data with at most `most` development sentences, a stratified subset."""
        if "dev" not in self.splits:
            return self
        return dataclasses.replace(
            self, splits={**self.splits, "dev": subset(self.splits["dev"], most, seed)}
        )

    def record(self) -> dict[str, Any]:
        """Returns the description of the data in `run.json`."""
        return {
            "labels": list(self.labels),
            "scheme": self.scheme,
            "data_sha256": {split: digest(part) for split, part in self.splits.items()},
            "examples": {split: len(part) for split, part in self.splits.items()},
            "words": {split: sum(map(len, part.words)) for split, part in self.splits.items()},
            "windows": {split: len(windows) for split, windows in self.windows.items()},
        }

    @functools.cached_property
    def windows(self) -> dict[str, Windows]:
        """Dict from split to the windows of its sentences."""
        encoder = TextEncoder(self.vocabulary, self.max_seq_length)
        return {
            split: make_windows(part.words, encoder, self.max_seq_length, self.stride)
            for split, part in self.splits.items()
        }

    @functools.cached_property
    def training_features(self) -> Features:
        """Windows to train on, with the labels of their words."""
        ids = label_ids(self.splits["train"].tags, self.labels)
        return features_of(self.windows["train"], ids)

    def inputs(self, split: str) -> Features:
        """Returns the windows of a split; among several tasks each row has its task id."""
        features = features_of(self.windows[split])
        if self.position is None:
            return features
        numbers = np.full(len(features), self.position.number, np.int32)
        return dataclasses.replace(features, task_ids=numbers)

    def own_logits(self, logits: np.ndarray) -> np.ndarray:
        """Returns the task's own outputs of the model, `[windows, seq, tags]`."""
        return logits[..., self.position.columns] if self.position else logits


def subset(part: TaggedSentences, most: int, seed: int) -> TaggedSentences:
    """Returns at most `most` sentences; the share of those with entities stays."""
    if most >= len(part):
        return part
    strata = [any(tag != OUTSIDE for tag in tags) for tags in part.tags]
    rows = stratified_subset(strata, most, seed)
    return dataclasses.replace(part, sentences=[part.sentences[row] for row in rows])


def digest(part: TaggedSentences) -> str:
    """Returns the SHA-256 of words and tags."""
    result = hashlib.sha256()
    for sentence in part.sentences:
        pair = (sentence.words, sentence.tags)
        result.update(repr(pair).encode("utf-8", "backslashreplace"))
    return result.hexdigest()


def data_name(config: RunConfig) -> str:
    """Returns the name of the data, for the adapter: that of its dataset or its folder."""
    if config.data.adapter_name:
        return config.data.adapter_name
    if is_dataset(config):
        return dataset_of(config).replace("/", "_")
    folder = config.data.data_dir or os.path.dirname(config.questions.train_file or "")
    return (folder and storage.folder_name(folder)) or TASK
