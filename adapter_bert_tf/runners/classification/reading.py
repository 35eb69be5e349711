"""From flags to tokenized data of a task whose examples are rows of tables."""

import dataclasses
import os

from absl import logging

from adapter_bert_tf.data import checks
from adapter_bert_tf.data.batches import tokenize
from adapter_bert_tf.data.examples import limit, read_examples
from adapter_bert_tf.data.folds import Fold
from adapter_bert_tf.data.labels import infer_labels, require_one_line
from adapter_bert_tf.data.tables import find_file, read_table
from adapter_bert_tf.data.tfds import read_tfds
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.retry import is_remote
from adapter_bert_tf.runners.classification.table_files import (
    own_files,
    say_other_columns,
    say_other_names,
)
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.sanitize import preview, printable
from adapter_bert_tf.task_types import chosen_type, table_type
from adapter_bert_tf.task_types.table_type import choose_metrics
from adapter_bert_tf.tasks import OWN, find_task, own_task


def task_of(config):
    """The `Task` that the flags name or describe."""
    if config.data.task_name.lower() != OWN:
        return find_task(config.data.task_name)
    reads = config.actions.do_train or config.actions.do_eval or config.actions.do_predict
    if not config.data.data_dir and reads:
        raise InputError(
            "--task_name=tsv needs --data_dir, the folder with train.tsv or train.csv."
        )
    extension, train = own_files(config.data.data_dir) if reads else ("tsv", "train")
    if not config.table.text_a_column or (
        not config.table.label_column and config.actions.do_train | config.actions.do_eval
    ):
        raise InputError(
            "--task_name=tsv needs --text_a_column and --label_column, by name or by "
            f"number from 0.{_columns_there(config, extension, train)}"
        )
    return own_task(
        config.table.text_a_column,
        config.table.text_b_column,
        config.table.label_column,
        extension=extension,
        delimiter=config.table.delimiter,
        header=config.table.header,
        quoted=config.table.quoted,
        encoding=config.table.encoding,
        task_type=chosen_type(config.values).name,
        skip_bad_rows=config.table.skip_bad_rows,
        train=train,
    )


def _columns_there(config, extension, train):
    """A hint for who does not know the columns: the first row."""
    task = own_task(
        "0",
        extension=extension,
        delimiter=config.table.delimiter,
        quoted=config.table.quoted,
        encoding=config.table.encoding,
        header=False,
        train=train,
    )
    for source in task.layouts[0].values():
        if find_file(source, config.data.data_dir):
            _, rows = read_table(source, config.data.data_dir)
            return f" The first row of {source.file} is {rows[0][1]}"
    return ""


def data_folder(config, task):
    """Where the task's files are. Raises `InputError` if it is not known."""
    folder = config.data.data_dir or task.folder
    if folder is None:
        names = [source.file for layout in task.layouts for source in layout.values()]
        raise InputError(
            f"--task_name={task.name} needs --data_dir, the folder with "
            f"{', '.join(dict.fromkeys(names))}."
        )
    return folder


def read_task(config, task, encoder, saved=None):
    """Reads, checks, cuts down and tokenizes what a run needs.

    Args:
      config: those that decide what is read.
      task: `Task`.
      encoder: `TextEncoder` of the base and the length.
      saved: `SavedAdapter` to apply; its labels count.

    Raises:
      InputError: for anything wrong with the data.
    """
    wanted = {
        "train": config.actions.do_train,
        "dev": config.actions.do_eval,
        "test": config.actions.do_predict,
    }
    roles = [name for name, needed in wanted.items() if needed]
    kind = table_type(task.task_type)
    saved_labels = saved.config["labels"] if saved else None
    infers = task.labels is None and kind.labels is None and not saved_labels
    reads = ["train", *roles] if infers and "train" not in roles else roles
    examples = _read(config, task, reads) if reads else {}
    if infers:
        task = task.with_labels(_labels_of(kind, examples, both=bool(config.data.folds)))
        if config.actions.do_train:
            kind.check_inferred(task.labels)
    elif task.labels is None and saved_labels:
        task = task.with_labels(saved_labels)
    task = dataclasses.replace(task, metrics=choose_metrics(config.evaluation.metric, task, kind))
    if config.data.split_seed and not task.is_divided() and not config.data.folds:
        logging.warning(
            "--split_seed=%d has no effect: the data comes divided.", config.data.split_seed
        )
    labels = {
        split: None if part.labels is None else kind.encode(task, part)
        for split, part in examples.items()
    }
    if config.actions.do_train:
        most = config.data.max_train_examples
        examples["train"] = limit(examples["train"], most, _seed(config), kind)
        labels["train"] = encoded = kind.encode(task, examples["train"])
        kind.check_training(task, encoded)
    elif infers:
        del examples["train"]
    features = {split: tokenize(part, encoder, labels[split]) for split, part in examples.items()}
    print(checks.report(task, examples, features, _called(config), kind), flush=True)
    checks.warn(examples, features, encoder, kind)
    return ClassificationData(
        task,
        examples,
        labels,
        features,
        config.data.split_seed if task.is_divided() else None,
        config.data.max_seq_length,
        called=_called(config),
        fold=_fold(config),
    )


def _labels_of(kind, examples, both):
    """The labels that there are in the training data; of folds, which are parts of it, in both."""
    known = [examples[split] for split in ("train", "dev")[: 1 + both] if split in examples]
    for part in known:
        require_one_line(part.labels, part.places)
    cells = [cell for part in known for cell in part.labels]
    return infer_labels([label for cell in cells for label in kind.labels_in(cell)])


def _called(config):
    """What the adapter calls its task; a table of the user's own as its folder is called."""
    name = config.data.adapter_name
    if name is None and config.data.task_name.lower() == OWN and config.data.data_dir:
        place = (
            config.data.data_dir
            if is_remote(config.data.data_dir)
            else os.path.abspath(config.data.data_dir)
        )
        return printable(os.path.basename(place.rstrip("/"))) or None
    if name is not None and (not name.strip() or name != printable(name)):
        raise InputError(f"--adapter_name is one line of text. Received: {preview(name)}")
    return name


def _seed(config):
    """Of the subset; who takes no subset is not given one."""
    return config.training.seed if config.data.max_train_examples else 0


def _fold(config):
    """The `Fold` whose data is read, or None. Of a sweep, before its runs, it is the first."""
    return (
        Fold(config.data.fold or 0, config.data.folds, config.data.split_seed)
        if config.data.folds
        else None
    )


def _read(config, task, roles):
    fold = _fold(config)
    if fold is None or not {"train", "dev"} & set(roles):
        return _read_source(config, task, roles)
    # All training data is divided; a development set of the task's own is left alone.
    of_files = config.data.data_source != "tfds"
    if fold.number == 0 and of_files and _has_dev_file(task, data_folder(config, task)):
        logging.warning("--folds divides the training data; the development set is not used.")
    whole = dataclasses.replace(task, dev_share=None)
    examples = _read_source(config, whole, {"train", *roles} - {"dev"})
    parts = fold.split(examples["train"], table_type(task.task_type).stratified)
    return {split: part for split, part in (examples | parts).items() if split in roles}


def _has_dev_file(task, folder):
    sources = [layout["dev"] for layout in task.layouts if "dev" in layout]
    return any(find_file(source, folder) for source in sources)


def _read_source(config, task, roles):
    if config.data.data_source == "tfds":
        return read_tfds(task, config.data.data_dir, roles)
    if task.name == OWN:
        say_other_columns(task, config.data.data_dir, roles)
        if "dev" in roles and not _has_dev_file(task, config.data.data_dir):
            say_other_names(config.data.data_dir, task.layouts[0]["dev"].file)
    kind = table_type(task.task_type)
    return read_examples(task, data_folder(config, task), roles, config.data.split_seed, kind)
