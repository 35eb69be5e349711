"""From settings to the tokenized data of a task whose examples are rows of tables."""

import dataclasses
from collections.abc import Collection, Mapping

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data import checks
from adapter_bert_tf.data.batches import tokenize
from adapter_bert_tf.data.examples import (
    Examples,
    limit,
    read_examples,
    with_equal_numbers,
    without_hidden_labels,
)
from adapter_bert_tf.data.folds import Fold
from adapter_bert_tf.data.labels import infer_labels, require_one_line
from adapter_bert_tf.data.tfds import read_tfds
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.runners.classification.chosen_task import data_folder, has_dev_file
from adapter_bert_tf.runners.classification.table_files import (
    folder_of_named,
    say_found_delimiters,
    warn_of_encodings,
    warn_of_other_columns,
    warn_of_other_names,
)
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.sanitize import preview, printable
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.task_types import TableType, table_type
from adapter_bert_tf.task_types.table_type import choose_metrics
from adapter_bert_tf.tasks import OWN, Task, role


def read_task(
    config: RunConfig, task: Task, encoder: TextEncoder, saved: SavedAdapter | None = None
) -> ClassificationData:
    """Reads, checks, limits and tokenizes the data that a run needs. Raises `InputError`."""
    task_type = table_type(task.task_type)
    task, examples = _read_with_labels(config, task, task_type, saved)
    metrics = choose_metrics(config.evaluation.metric, task, task_type)
    task = dataclasses.replace(task, metrics=metrics)
    labels = {
        split: None if part.labels is None else task_type.encode(task, part)
        for split, part in examples.items()
    }
    if config.actions.do_train:
        most = config.data.max_train_examples
        seed = config.training.seed if most else 0
        examples["train"] = limit(examples["train"], most, seed, task_type)
        labels["train"] = encoded = task_type.encode(task, examples["train"])
        task_type.check_training(task, encoded)
    elif "train" in examples:  # Only its labels were needed.
        del examples["train"]
    features = {split: tokenize(part, encoder, labels[split]) for split, part in examples.items()}
    name = adapter_name(config)
    print(checks.report(task, examples, features, name, task_type), flush=True)
    checks.warn(examples, features, encoder, task_type)
    if not task.is_divided() and not config.data.folds:
        warn_of_split_seed(config)
    return ClassificationData(
        task,
        examples,
        labels,
        features,
        config.data.split_seed if task.is_divided() else None,
        config.data.max_seq_length,
        adapter_name=name,
        fold=_fold(config),
    )


def warn_of_split_seed(config: RunConfig) -> None:
    """Warns of a given `--split_seed` for data that comes with a split."""
    if "split_seed" in config.given and config.data.split_seed:
        logging.warning(
            "--split_seed=%d has no effect: the data comes with a split.", config.data.split_seed
        )


def _read_with_labels(
    config: RunConfig, task: Task, task_type: TableType, saved: SavedAdapter | None
) -> tuple[Task, dict[str, Examples]]:
    """Reads the splits that a run needs, and completes the task with its labels.

    Labels that neither the task, its type nor a saved adapter has are inferred from training data.
    """
    actions = config.actions
    needed = {"train": actions.do_train, "dev": actions.do_eval, "test": actions.do_predict}
    infers = infers_labels(task, task_type, saved)
    roles = [name for name in needed if needed[name] or (infers and name == "train")]
    examples = _read(config, task, roles) if roles else {}
    return with_labels(config, task, examples, saved, bool(config.data.folds))


def infers_labels(task: Task, task_type: TableType, saved: SavedAdapter | None) -> bool:
    """Whether the training data decides the labels."""
    saved_labels = saved.config["labels"] if saved else None
    return task.labels is None and task_type.labels is None and not saved_labels


def with_labels(
    config: RunConfig,
    task: Task,
    examples: dict[str, Examples],
    saved: SavedAdapter | None,
    also_dev: bool,
) -> tuple[Task, dict[str, Examples]]:
    """Completes a task with its labels, and reads those of the examples that are equal as one.

    With `also_dev` the development set is a part of the training data, which decides the labels.
    """
    task_type = table_type(task.task_type)
    saved_labels = saved.config["labels"] if saved else None
    if infers_labels(task, task_type, saved):
        task = task.with_labels(_infer_labels(task_type, examples, also_dev))
        if config.actions.do_train:
            task_type.check_inferred(task.labels or ())
    elif task.labels is None and saved_labels:
        task = task.with_labels(saved_labels)
    known = task.labels or ()
    for split, part in examples.items():
        shown = without_hidden_labels(part, split, known) if role(split) == "test" else part
        examples[split] = with_equal_numbers(shown, split, known, task_type)
    return task, examples


def _infer_labels(
    task_type: TableType, examples: Mapping[str, Examples], also_dev: bool
) -> tuple[str, ...]:
    """Returns the labels in the training data; both parts of a fold are training data."""
    splits = ("train", "dev") if also_dev else ("train",)
    parts = [examples[split] for split in splits if split in examples]
    cells = []
    for part in parts:
        known = [cell for cell in part.labels or () if cell is not None]
        require_one_line(known, part.places)
        cells += known
    return infer_labels([label for cell in cells for label in task_type.labels_in(cell)])


def adapter_name(config: RunConfig) -> str | None:
    """Returns the adapter's name for its task; for the user's own table its folder's name."""
    name, folder = config.data.adapter_name, config.data.data_dir or folder_of_named(config)
    if name is None and (config.data.task_name or "").lower() == OWN and folder:
        return printable(storage.folder_name(folder)) or None
    if name is not None and (not name.strip() or name != printable(name)):
        raise InputError(f"--adapter_name must be one line of text. Received: {preview(name)}")
    return name


def _fold(config: RunConfig) -> Fold | None:
    """Returns the fold that is read, or None; for a sweep, before its runs, the first."""
    data = config.data
    return Fold(data.fold or 0, data.folds, data.split_seed) if data.folds else None


def _read(config: RunConfig, task: Task, roles: Collection[str]) -> dict[str, Examples]:
    """Reads the splits of a task with one of these roles, or the parts of a fold."""
    fold = _fold(config)
    if fold is None or not {"train", "dev"} & set(roles):
        return _read_source(config, task, roles)
    from_files = config.data.data_source != "tfds"
    if fold.number == 0 and from_files and has_dev_file(task, data_folder(config, task)):
        logging.warning("--folds splits the training data; the development set is not used.")
    undivided = dataclasses.replace(task, dev_share=None)
    examples = _read_source(config, undivided, {"train", *roles} - {"dev"})
    parts = fold.split(examples["train"], table_type(task.task_type).stratified)
    return {split: part for split, part in (examples | parts).items() if split in roles}


def _read_source(config: RunConfig, task: Task, roles: Collection[str]) -> dict[str, Examples]:
    data = config.data
    if data.data_source == "tfds":
        tfds_splits: dict[str, Examples] = read_tfds(task, data.data_dir, roles)
        return tfds_splits
    folder = data_folder(config, task)
    warn_of_files(config, task, folder, roles)
    task_type = table_type(task.task_type)
    splits: dict[str, Examples] = read_examples(task, folder, roles, data.split_seed, task_type)
    return splits


def warn_of_files(config: RunConfig, task: Task, folder: str, roles: Collection[str]) -> None:
    """Warns of what looks wrong about the files of the user's own table."""
    if task.name != OWN:
        return
    if not config.table.delimiter:
        say_found_delimiters(task, roles)
    warn_of_encodings(task, folder, roles, config.table.encoding)
    warn_of_other_columns(task, folder, roles)
    if "dev" in roles and folder and not has_dev_file(task, folder):
        warn_of_other_names(folder, task.layouts[0]["dev"].file)
