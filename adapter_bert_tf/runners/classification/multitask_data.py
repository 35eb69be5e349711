"""The data of several tasks that are trained together."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.methods.multitask import check_task_names
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.task_list import Entry, entries
from adapter_bert_tf.data.batches import Features
from adapter_bert_tf.data.mixture import concatenate
from adapter_bert_tf.data.tokenization import TextEncoder, text_encoder
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.runners.classification.reading import read_task, task_of
from adapter_bert_tf.runners.classification.result_files import raw_file
from adapter_bert_tf.runners.classification.task_data import Among, ClassificationData
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.directory import with_task_config
from adapter_bert_tf.store.multitask import heads_of
from adapter_bert_tf.task_types import chosen_type
from adapter_bert_tf.tasks import OWN, Task, find_task, letters, role


def configs_of(config: RunConfig) -> dict[str, RunConfig]:
    """Dict from each task's name to its own configuration. Raises `InputError`."""
    found = entries(config.data.task_name or "")
    try:
        check_task_names(tuple(entry.name for entry in found))
    except InputError as error:
        raise InputError(f"--task_name={preview(config.data.task_name)}: {error}") from error
    return {entry.name: _config_of(config, entry, len(found) == 1) for entry in found}


def _config_of(config: RunConfig, entry: Entry, alone: bool) -> RunConfig:
    settings = dict(entry.settings)
    if "data_dir" not in settings and config.data.data_source != "tfds" and config.data.data_dir:
        task_name = str(settings["task_name"])
        settings["data_dir"] = _folder_of(config.data.data_dir, entry.name, task_name, alone)
    return config.with_defaults(**settings)


def _folder_of(above: str, name: str, task_name: str, alone: bool) -> str:
    """The folder of a task in the folder of all of them, called as the task is, in any case.

    One with the name that the user gave counts before one with that of GLUE's task. Of one task
    that is asked for alone it may be the folder itself.
    """
    there = [n.rstrip("/") for n in storage.listdir(above)] if storage.isdir(above) else []
    titles = () if task_name == OWN else (task_name, find_task(task_name).title)
    for called in ({name}, {name, *titles}):
        wanted = {letters(title) for title in called}
        found = [n for n in there if letters(n) in wanted and storage.isdir(f"{above}/{n}")]
        if len(found) == 1:
            return f"{above.rstrip('/')}/{found[0]}"
    shipped = None if task_name == OWN else find_task(task_name).folder
    if alone or shipped:
        return shipped or above
    raise InputError(
        f"--data_dir={above} must hold one folder for each task. For {name!r} it holds "
        f"{preview(found) if found else 'none'}, and in all {preview(sorted(there))}. Name the "
        f"folder: --task_name=...,{task_name}=FOLDER"
    )


def read_tasks(
    config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
) -> tuple[ClassificationData, ...]:
    """The data of all tasks, each with its place among them.

    Args:
      config: those that decide what is read.
      vocabulary: of the base.
      saved: what was trained, to be applied; its order and labels count.

    Raises:
      InputError: which names the task that something is wrong with.
    """
    configs, encoder = configs_of(config), text_encoder(vocabulary, config.data.max_seq_length)
    _check_types(configs)
    found = [
        _read(name, own, encoder, with_task_config(saved, name) if saved else None)
        for name, own in configs.items()
    ]
    widths = _widths(saved, list(configs), found)
    starts = dict(zip(widths, np.cumsum([0, *widths.values()]).tolist(), strict=False))
    order = list(widths)
    tasks = tuple(
        dataclasses.replace(
            data,
            among=Among(name, order.index(name), slice(starts[name], starts[name] + widths[name])),
        )
        for name, data in zip(configs, found, strict=True)
    )
    check_apart(tasks)
    return tasks


def _check_types(configs: dict[str, RunConfig]) -> None:
    """Requires types of tasks that can share a batch. Raises `InputError`."""
    types = {name: chosen_type(own.values) for name, own in configs.items()}
    if other := {name: kind for name, kind in types.items() if kind.mixes_as is None}:
        settings = [setting for kind in other.values() for setting in kind.settings]
        raise InputError(
            "Several tasks have one label or one score an example each. Received: "
            f"{', '.join(dict.fromkeys(settings))} of {preview(list(other))}"
        )


def check_apart(tasks: Sequence[ClassificationData]) -> None:
    """No two tasks may have a file or a result of one name. Raises `InputError`."""
    for what, names_of in (("file", files_of), ("result", results_of)):
        owner: dict[str, str] = {}
        for task in tasks:
            for name in sorted(names_of(task)):
                other = owner.setdefault(name.lower(), task.name)
                if other != task.name:
                    raise InputError(
                        f"The tasks {preview(other)} and {preview(task.name)} would have one "
                        f"{what}, "
                        f"{preview(name)}. Give one of them another name, in a YAML file of tasks."
                    )


def files_of(task: ClassificationData) -> set[str]:
    """Names of the files of a task's predictions, without `.tsv`."""
    splits = {split for layout in task.task.layouts for split in layout if role(split) == "test"}
    raw = {f"{task.name}_{raw_file(split)}" for split in splits}
    return raw | {task.task.submission(split) for split in splits}


def results_of(task: ClassificationData) -> set[str]:
    """Names of a task's results on all its development and test sets."""
    splits = {split for layout in task.task.layouts for split in layout}
    return {
        "_".join([task.prefix(kind), *split.split("_")[1:], metric])
        for kind, of in (("eval", "dev"), ("test", "test"))
        for split in splits
        if role(split) == of
        for metric in (*task.task.metrics, "loss")
    }


def _read(
    name: str, config: RunConfig, encoder: TextEncoder, saved: SavedAdapter | None
) -> ClassificationData:
    try:
        return read_task(config, with_title(name, task_of(config)), encoder, saved)
    except InputError as error:
        raise InputError(f"The task {name!r}: {_bare(error, name)}", *error.arguments) from error


def _bare(error: InputError, name: str) -> str:
    """A message without the task that it begins with, which is said already."""
    before = f"The task {name!r} "
    said = str(error).removeprefix(before)  # A path stays as it is.
    return said[0].upper() + said[1:] if said != str(error) else said


def with_title(name: str, task: Task) -> Task:
    """A task whose files have the name that the user gave it, if that is another than its own."""
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


def _widths(
    saved: SavedAdapter | None, names: Sequence[str], found: Sequence[ClassificationData]
) -> dict[str, int]:
    """Dict from each task that the model has to the number of its outputs."""
    if saved:
        return {head.task: head.outputs for head in heads_of(saved.config)}
    outputs = [data.task_type.num_outputs(data.labels_in_order) for data in found]
    return dict(zip(names, outputs, strict=True))


def mixed_features(tasks: Sequence[ClassificationData]) -> Features:
    """What is trained on, of all tasks; labels as `losses.mixed_loss` takes them."""
    return concatenate([_with_places(task) for task in tasks])


def _with_places(task: ClassificationData) -> Features:
    """Labels as float32 `[examples, 2]`: the output that is right, and the score it should have."""
    assert task.among
    features, first = task.training_features, task.among.columns.start
    labels = task.task_type.mixed_labels(tf.cast(features.labels, tf.float32), first)
    return dataclasses.replace(features, labels=labels)
