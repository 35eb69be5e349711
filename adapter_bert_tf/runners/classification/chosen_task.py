"""The task that the settings name or describe, and its folder; without TensorFlow."""

import dataclasses
import functools

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.tables.files import find_file
from adapter_bert_tf.errors import Conflict, Missing
from adapter_bert_tf.runners.classification.table_files import (
    first_row,
    named_files,
    own_files,
    with_actual_encodings,
    with_found_delimiters,
    with_named_files,
)
from adapter_bert_tf.task_types import chosen_type
from adapter_bert_tf.tasks import OWN, Task, find_task, own_task


def task_of(config: RunConfig) -> Task:
    """Returns the task that the settings name or describe. Raises `InputError`."""
    name, folder = config.data.task_name or "", config.data.data_dir
    named = named_files(config)
    if name.lower() != OWN:
        if named:
            raise Conflict(
                f"--{next(iter(named))}_file is for --task_name=tsv. Received: --task_name={name}, "
                "whose files are in --data_dir."
            )
        return find_task(name)
    actions, table = config.actions, config.table
    reads = actions.do_train or actions.do_eval or actions.do_predict
    if not (folder or named) and reads:
        raise Missing(
            "--task_name=tsv needs --data_dir, the folder with train.tsv or train.csv, or "
            "--train_file."
        )
    extension, train = own_files(folder) if folder and reads else ("tsv", "train")
    describe = functools.partial(
        own_task,
        extension=extension,
        delimiter=table.delimiter,
        quoted=table.quoted,
        encoding=table.encoding,
        train=train,
    )
    needs_labels = actions.do_train or actions.do_eval
    if not table.text_a_column or (needs_labels and not table.label_column):
        described = with_named_files(describe("0", header=False), named, folder, config)
        raise Missing(
            "--task_name=tsv needs --text_a_column and --label_column, by name or by number from "
            f"0.{_columns_hint(described, folder or '') if folder or named else ''}"
        )
    task = describe(
        table.text_a_column,
        table.text_b_column,
        table.label_column,
        header=table.header,
        task_type=chosen_type(config.values).name,
        skip_bad_rows=table.skip_bad_rows,
        dev_share=table.dev_share,
    )
    if not folder and not named:
        return task
    task = _without_unused_share(with_named_files(task, named, folder, config), folder or "")
    if not actions.do_train and "encoding" not in config.given:
        task = with_actual_encodings(task, folder or "")
    return task if table.delimiter else with_found_delimiters(task, folder or "")


def _without_unused_share(task: Task, folder: str) -> Task:
    """Returns the task; with a dev file nothing is cut from its training data."""
    return dataclasses.replace(task, dev_share=None) if has_dev_file(task, folder) else task


def _columns_hint(task: Task, folder: str) -> str:
    """Returns a sentence with the first row of a table, for users who do not know its columns."""
    for source in with_found_delimiters(task, folder).layouts[0].values():
        if find_file(source, folder):
            return f" The first row of {source.file} is {first_row(source, folder)}"
    return ""


def has_dev_file(task: Task, folder: str) -> bool:
    """Whether a task has a file for its development set."""
    sources = [layout["dev"] for layout in task.layouts if "dev" in layout]
    return any(find_file(source, folder) for source in sources)


def data_folder(config: RunConfig, task: Task) -> str:
    """Returns the folder of the task's files. Raises `InputError` if it is unknown."""
    folder = config.data.data_dir or task.folder
    if folder is None and any(s.files for layout in task.layouts for s in layout.values()):
        return ""
    if folder is None:
        names = [source.file for layout in task.layouts for source in layout.values()]
        raise Missing(
            f"--task_name={task.name} needs --data_dir, the folder with "
            f"{', '.join(dict.fromkeys(names))}."
        )
    return folder
