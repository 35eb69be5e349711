"""From flags to tokenized data: the task, its examples, and `Features` of each split."""

import dataclasses
import functools
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.data import checks
from adapter_bert_tf.data.batches import Features, tokenize
from adapter_bert_tf.data.examples import Examples, read_examples
from adapter_bert_tf.data.labels import infer_labels, label_ids, limit
from adapter_bert_tf.data.tables import find_file, read_table
from adapter_bert_tf.data.tfds import read_tfds
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import HEADS, Head
from adapter_bert_tf.tasks import OWN, Task, find_task, own_task


@dataclasses.dataclass(frozen=True)
class Scale:
    """Mean and deviation of the training scores; a model learns (score - mean) / deviation."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: tf.Tensor) -> "Scale":
        """That of scores, float32 `[examples]`."""
        values = scores.numpy()
        return cls(float(values.mean()), float(values.std()))


@dataclasses.dataclass(frozen=True)
class ClassificationData:
    """The data of a task of one or two texts.

    Args:
      task: `Task`, its labels known.
      examples: dict from split to `Examples`.
      labels: dict from split to label ids or scores, `[examples]`, or None where hidden.
      features: dict from split to `Features`.
      split_seed: of the random division; None if the publishers made one.
      max_seq_length: of an input, in word pieces.
    """

    task: Task
    examples: dict[str, Examples]
    labels: dict[str, np.ndarray | None]
    features: dict[str, Features]
    split_seed: int | None
    max_seq_length: int

    @property
    def name(self) -> str:
        """Of the task."""
        return self.task.name

    @property
    def count(self) -> int:
        """Number of training examples."""
        return len(self.examples.get("train", []))

    @property
    def metric(self) -> str:
        """Key, in the results, of the metric to choose by."""
        return f"eval_{self.task.metrics[0]}"

    @property
    def head(self) -> Head:
        """The kind of head."""
        return HEADS["regression" if self.task.regression else "classification"]

    @property
    def labels_in_order(self) -> tuple[str, ...]:
        """Label strings in the order of their ids; none for regression."""
        return () if self.task.regression else self.task.labels or ()

    @functools.cached_property
    def scale(self) -> Scale | None:
        """Of the training scores; None for classes, or if there is no training data."""
        if not self.task.regression or "train" not in self.features:
            return None
        return Scale.of(self.features["train"].labels)

    @functools.cached_property
    def training_features(self) -> Features:
        """What is trained on; scores are standardized."""
        features = self.features["train"]
        if self.scale is None:
            return features
        scores = (features.labels.numpy() - self.scale.mean) / self.scale.deviation
        return dataclasses.replace(features, labels=tf.constant(scores))

    def adapter_config(self) -> dict[str, Any]:
        """What a saved adapter says of its task."""
        return {
            "task": self.task.name,
            "head": self.head.file_name,
            "labels": list(self.task.labels or ()),
            "regression": self.task.regression,
            "split_seed": self.split_seed,
            "inputs": {"texts": self.task.num_texts, "max_seq_length": self.max_seq_length},
        } | ({"table": table_of(self.task)} if self.task.name == OWN else {})

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


def table_of(task):
    """How a table of the user's own is read, by the flags that say so."""
    source = task.layouts[0]["train"]
    columns = source.columns
    named = {
        "text_a_column": columns.text_a,
        "text_b_column": columns.text_b,
        "label_column": columns.label,
    }
    given = {flag: str(column) for flag, column in named.items() if column is not None}
    return given | {"header": source.has_header, "regression": task.regression}


def task_of(flags):
    """The `Task` that the flags name or describe."""
    if flags.task_name.lower() != OWN:
        return find_task(flags.task_name)
    if not flags.data_dir:
        raise InputError(
            "--task_name=tsv needs --data_dir, the folder with train.tsv or train.csv."
        )
    extension = _extension(flags.data_dir)
    if not flags.text_a_column or (not flags.label_column and flags.do_train | flags.do_eval):
        raise InputError(
            "--task_name=tsv needs --text_a_column and --label_column, by name or by "
            f"number from 0.{_columns_there(flags, extension)}"
        )
    return own_task(
        flags.text_a_column,
        flags.text_b_column,
        flags.label_column,
        extension=extension,
        delimiter=flags.delimiter,
        header=flags.header,
        quoted=flags.quoted,
        encoding=flags.encoding,
        regression=flags.regression,
    )


def _extension(folder):
    files = storage.listdir(folder) if storage.isdir(folder) else []
    names = {name.removesuffix(".gz") for name in files}
    stems = ("train", "dev", "test")
    found = {end for end in ("csv", "tsv") if any(f"{stem}.{end}" in names for stem in stems)}
    if len(found) == 2:
        raise InputError(
            f"{folder} holds both .csv and .tsv files: {sorted(names)[:12]}. Keep one "
            "kind in a folder of its own."
        )
    return found.pop() if found else "tsv"


def _columns_there(flags, extension):
    """A hint for who does not know the columns: the first row."""
    task = own_task(
        "0",
        extension=extension,
        delimiter=flags.delimiter,
        quoted=flags.quoted,
        encoding=flags.encoding,
        header=False,
    )
    for source in task.layouts[0].values():
        if find_file(source, flags.data_dir):
            _, rows = read_table(source, flags.data_dir)
            return f" The first row of {source.file} is {rows[0][1]}"
    return ""


def data_folder(flags, task):
    """Where the task's files are. Raises `InputError` if it is not known."""
    folder = flags.data_dir or task.folder
    if folder is None:
        names = [source.file for layout in task.layouts for source in layout.values()]
        raise InputError(
            f"--task_name={task.name} needs --data_dir, the folder with "
            f"{', '.join(dict.fromkeys(names))}."
        )
    return folder


def read_task(flags, task, vocabulary, saved=None):
    """Reads, checks, cuts down and tokenizes what a run needs.

    Args:
      flags: those that decide what is read.
      task: `Task`.
      vocabulary: `Vocabulary` of the base.
      saved: `SavedAdapter` to apply; its labels count.

    Raises:
      InputError: for anything wrong with the data.
    """
    wanted = {"train": flags.do_train, "dev": flags.do_eval, "test": flags.do_predict}
    roles = [name for name, needed in wanted.items() if needed]
    saved_labels = saved.config["labels"] if saved and not task.regression else None
    infers = task.labels is None and not task.regression and not saved_labels
    reads = ["train", *roles] if infers and "train" not in roles else roles
    examples = _read(flags, task, reads)
    if infers:
        task = task.with_labels(infer_labels(examples["train"].labels))
    elif task.labels is None and saved_labels:
        task = task.with_labels(saved_labels)
    labels = {split: label_ids(task, part) for split, part in examples.items()}
    if flags.do_train:
        examples["train"] = limit(task, examples["train"], flags.max_train_examples, _seed(flags))
        labels["train"] = label_ids(task, examples["train"])
        _check_training_labels(task, labels["train"])
    elif infers:
        del examples["train"]
    encoder = TextEncoder(vocabulary, flags.max_seq_length)
    features = {split: tokenize(part, encoder, labels[split]) for split, part in examples.items()}
    print(checks.report(task, examples, features), flush=True)
    checks.warn(examples, features, encoder)
    return ClassificationData(
        task,
        examples,
        labels,
        features,
        flags.split_seed if task.is_divided() else None,
        flags.max_seq_length,
    )


def _seed(flags):
    """Of the subset; who takes no subset is not given one."""
    return flags.seed if flags.max_train_examples else 0


def _read(flags, task, roles):
    if flags.data_source == "tfds":
        return read_tfds(task, flags.data_dir, roles)
    return read_examples(task, data_folder(flags, task), roles, flags.split_seed)


def _check_training_labels(task, labels):
    there = np.unique(labels)
    if len(there) < 2:
        only = f"score: {labels[0]:g}" if task.regression else f"label: {task.labels[labels[0]]!r}"
        raise InputError(
            f"The training data has only one {only}. There is nothing to learn. Is "
            "--label_column right, and --max_train_examples large enough?"
        )
    if not task.regression and len(there) < len(task.labels):
        logging.warning(
            "%d of %d labels have no training example.",
            len(task.labels) - len(there),
            len(task.labels),
        )
