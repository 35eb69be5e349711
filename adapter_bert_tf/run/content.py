"""What a run is made of besides its flags: data, base, adapter, and what it begins from."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.base import Base
from adapter_bert_tf.config.config_file import read_yaml
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.plan import Method
from adapter_bert_tf.run.task_runner import TaskData
from adapter_bert_tf.store.members import Member


def content_of(
    tasks: Sequence[TaskData],
    base: Base,
    chosen: Method,
    start: InitialAdapter | None = None,
    members: Sequence[Member] = (),
) -> dict[str, Any]:
    """What a run is made of besides its flags, as `run.json` says it."""
    records = {task.name: task.record() for task in tasks}
    made_of = (next(iter(records.values())) if len(tasks) == 1 else _together(records)) | {
        "base": base.fingerprint(),
        "adapter": chosen.parts.to_dict() if chosen.parts else None,
    }
    if start:  # What begins afresh says nothing, as before there was a choice.
        made_of["init_from"] = start.sha256
    if members:
        made_of["members"] = [member.config["sha256"] for member in members]
    read_back: dict[str, Any] = json.loads(json.dumps(made_of))  # As it is when it is read.
    return read_back


def _together(records: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The records of several tasks as one, with a digest of each task for each split."""
    digests = {name: record["data_sha256"] for name, record in records.items()}
    splits = dict.fromkeys(split for of_task in digests.values() for split in of_task)
    by_split = {
        split: {name: of_task.get(split) for name, of_task in digests.items()} for split in splits
    }
    return {"tasks": dict(records), "data_sha256": by_split}


def warn_of_other_data(config: str | None, content: Any) -> None:
    """Warns where `--config` is the `run.json` of a run on other data."""
    recorded = read_yaml(config, "--config").get("data_sha256") if config else None
    if not isinstance(recorded, dict):
        return
    for split, found in content["data_sha256"].items():
        if recorded.get(split, found) != found:
            logging.warning(
                "This does not repeat %s: that was a run on other %s examples.", config, split
            )
