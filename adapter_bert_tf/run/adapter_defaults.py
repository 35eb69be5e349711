"""Settings that a saved adapter knows: its task, the split of its data, and its base.

What it knows of the inputs (columns, length) is in `saved_settings`.
"""

import os
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.base.files import default_base
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Value
from adapter_bert_tf.store.base_match import base_of
from adapter_bert_tf.store.directory import parse_named_folders
from adapter_bert_tf.store.file_names import CONFIG
from adapter_bert_tf.store.files import (
    adapter_at,
    adapter_exists,
    find_adapter,
    read_adapter_config,
    read_config,
)
from adapter_bert_tf.store.multitask import (
    NAME,
    TASKS,
    is_several,
    names_of,
    require_one_task,
)
from adapter_bert_tf.task_types import TableType, type_of
from adapter_bert_tf.tasks import OWN
from adapter_bert_tf.tasks import TASKS as KNOWN_TASKS

BASE_SETTINGS = {"base_model", "vocab_file", "bert_config_file", "init_checkpoint"}


def with_adapter_defaults(config: RunConfig, adapters: str | None = None) -> RunConfig:
    """Returns the configuration with the settings of a saved adapter, where the user gave none.

    Raises `NotFound` if the adapter of `--adapter_dir`, or the first of `adapters`, is missing,
    `InputError` if one is damaged. Other missing adapters are reported where they are read.

    Args:
      config: of the command.
      adapters: `[NAME=]DIR,...` of an analysis that reads these instead of `--adapter_dir`.
    """
    if config.actions.do_train:
        start = config.training.init_from
        known = _base(config, find_adapter(start) if start else _first(config.training.fuse))
    else:
        folder = _first(adapters) if adapters else adapter_at(config.output.adapter_folder)
        if not adapters and config.output.adapter_dir:
            config = config.changed(adapter_dir=folder)
        if adapters and folder:  # Else the missing name of the task would be reported.
            require_one_task(read_adapter_config(folder), folder)
        known = _base(config, folder) | _task(config, folder)
    return config.with_defaults(**{n: v for n, v in known.items() if n not in config.given})


def _first(folders: str | None) -> str | None:
    """The first adapter directory of `[NAME=]DIR,...`."""
    for _, folder in parse_named_folders(folders or ""):
        return adapter_at(folder)
    return None


def _base(config: RunConfig, folder: str | None) -> dict[str, Value]:
    """The base that an adapter names, unless it is the installed one or the user gave another."""
    if folder is None or config.given & BASE_SETTINGS:
        return {}
    source = base_of(folder)
    return {} if source in (None, default_base()) else {"base_model": source}


def _task(config: RunConfig, folder: str | None) -> dict[str, Value]:
    """The task or tasks of an adapter, and the seed of a random split."""
    if folder is None or "task_name" not in config.values:
        return {}
    if not adapter_exists(folder):
        if "adapter_dir" in config.given:  # Else the missing name of the task would be reported.
            read_adapter_config(folder)
        return {}
    saved = read_config(os.path.join(folder, CONFIG))
    if is_several(saved):
        has_file = config.names_task and any(NAME in task for task in saved[TASKS])
        return {} if has_file else {"task_name": ",".join(names_of(saved))}
    if not config.names_task:
        return {}
    kind = type_of(saved)
    if not isinstance(kind, TableType) or saved["task"] not in (OWN, *KNOWN_TASKS):
        return {}
    known: dict[str, Value] = {"task_name": saved["task"]}
    if saved["task"] == OWN:
        known |= _type_settings(saved, kind)
    seed = saved.get("split_seed")
    return known if seed is None else known | {"split_seed": seed}


def _type_settings(saved: Mapping[str, Any], kind: TableType) -> dict[str, Value]:
    """The settings of a table's type, for adapters that do not record how it is read."""
    return {} if "table" in saved else dict(kind.settings)
