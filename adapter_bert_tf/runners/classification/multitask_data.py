"""The data of several tasks that are trained together."""

import dataclasses
from collections.abc import Sequence

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.tokenization import TextEncoder, text_encoder
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.runners.classification.chosen_task import task_of
from adapter_bert_tf.runners.classification.early_checks import check_types
from adapter_bert_tf.runners.classification.large_tables import is_stored
from adapter_bert_tf.runners.classification.reading import read_task
from adapter_bert_tf.runners.classification.result_files import raw_file, with_suffix
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.runners.multitask.data import positions, require_distinct
from adapter_bert_tf.runners.multitask.task_configs import configs_of
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.directory import with_task_config
from adapter_bert_tf.tasks import Task, role


def read_tasks(
    config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
) -> tuple[ClassificationData, ...]:
    """Reads the data of all tasks, each with its position among them. Raises `InputError`.

    The order of tasks and the labels are those of the saved adapter, if there is one.
    """
    configs = configs_of(config, saved)
    encoder = text_encoder(vocabulary, config.data.max_seq_length)
    check_types(configs)
    data = {
        name: _read(name, own, encoder, with_task_config(saved, name) if saved else None)
        for name, own in configs.items()
    }
    places = positions(saved, data)
    tasks = tuple(dataclasses.replace(task, position=places[name]) for name, task in data.items())
    check_distinct_names(tasks)
    return tasks


def check_distinct_names(tasks: Sequence[ClassificationData]) -> None:
    """Raises `InputError` if two tasks would have a file or a result of one name."""
    require_distinct("file", {task.name: _files_of(task) for task in tasks})
    require_distinct("result", {task.name: _results_of(task) for task in tasks})


def _files_of(task: ClassificationData) -> set[str]:
    """Returns the names of a task's prediction files, without `.tsv`."""
    splits = {split for layout in task.task.layouts for split in layout if role(split) == "test"}
    raw = {f"{task.name}_{raw_file(split)}" for split in splits}
    return raw | {task.task.submission(split) for split in splits}


def _results_of(task: ClassificationData) -> set[str]:
    """Returns the names of a task's results on all its development and test sets."""
    splits = {split for layout in task.task.layouts for split in layout}
    return {
        f"{with_suffix(task.prefix(kind), split)}_{metric}"
        for kind, split_role in (("eval", "dev"), ("test", "test"))
        for split in splits
        if role(split) == split_role
        for metric in (*task.task.metrics, "loss")
    }


def _read(
    name: str, config: RunConfig, encoder: TextEncoder, saved: SavedAdapter | None
) -> ClassificationData:
    try:
        task = with_title(name, task_of(config))
        is_stored(config, task, saved, together=True)
        return read_task(config, task, encoder, saved)
    except InputError as error:
        message = _without_task(error, name)
        raise type(error)(f"The task {name!r}: {message}", *error.arguments) from error


def _without_task(error: InputError, name: str) -> str:
    """Returns a message without the task that it begins with, because the caller names it."""
    message = str(error)
    short = message.removeprefix(f"The task {name!r} ")
    return message if short == message else short[0].upper() + short[1:]


def with_title(name: str, task: Task) -> Task:
    """Returns a task whose files have the name that the user gave it."""
    if name == task.name:
        return task
    layouts = tuple(
        {
            split: dataclasses.replace(
                source, submission=source.submission and f"{name}-{source.submission}"
            )
            for split, source in layout.items()
        }
        for layout in task.layouts
    )
    return dataclasses.replace(task, title=name, layouts=layouts)
