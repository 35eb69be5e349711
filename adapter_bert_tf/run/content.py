"""Content of a run besides its settings: data, base, adapter, and initial adapter."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.base import Base
from adapter_bert_tf.config.yaml_file import read_yaml
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.plan import Method
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store.members import Member


def content_of(
    tasks: Sequence[TaskData],
    base: Base,
    method: Method,
    initial: InitialAdapter | None = None,
    members: Sequence[Member] = (),
) -> dict[str, Any]:
    """Content of a run besides its settings, in the form of `run.json`."""
    records = {task.name: task.record() for task in tasks}
    content = (next(iter(records.values())) if len(tasks) == 1 else _together(records)) | {
        "base": base.fingerprint(),
        "adapter": method.adapter.to_dict() if method.adapter else None,
    }
    if initial:  # Absent without it, as in records of versions that had no initial adapters.
        content["init_from"] = initial.sha256
    if members:
        content["members"] = [member.config["sha256"] for member in members]
    read_back: dict[str, Any] = json.loads(json.dumps(content))  # As a later run reads it.
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
