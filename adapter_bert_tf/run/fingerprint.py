"""The settings and the content that identify a run."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.base import Base
from adapter_bert_tf.base.tokenizer_settings import TOKENIZER
from adapter_bert_tf.config import settings
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Value
from adapter_bert_tf.config.yaml_file import read_yaml
from adapter_bert_tf.output.records import Fingerprint, as_compared, digest
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.plan import Method
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store.checks import NORMS
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.tasks import role

# Parts of a base's fingerprint that a run's digest contains.
BASE = ("weights_sha256", "vocabulary_sha256", "lower_case", "hidden_size", "num_layers")
SEEN_IN_CONTENT = ("adapter",)  # May be a path; the content has what it leads to.
INITIAL = ("init_from", "members")  # In the content of a training that starts from adapters.


def content_of(
    tasks: Sequence[TaskData],
    base: Base,
    method: Method,
    initial: InitialAdapter | None = None,
    members: Sequence[Member] = (),
) -> dict[str, Any]:
    """Returns what a run is made of in addition to its settings, in the form of `run.json`."""
    records = {task.name: task.record() for task in tasks}
    content = (next(iter(records.values())) if len(tasks) == 1 else _combined(records)) | {
        "base": base.fingerprint(),
        "adapter": method.adapter.to_dict() if method.adapter else None,
    }
    if initial:  # Absent without it, as in records of versions that had no initial adapters.
        content["init_from"] = initial.sha256
    if members:
        content["members"] = [member.config["sha256"] for member in members]
    as_read_later: dict[str, Any] = json.loads(json.dumps(content))
    return as_read_later


def _combined(records: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Combines the records of several tasks; each split has a digest for each task."""
    digests = {name: record["data_sha256"] for name, record in records.items()}
    splits = dict.fromkeys(split for by_split in digests.values() for split in by_split)
    by_split = {split: {name: digests[name].get(split) for name in digests} for split in splits}
    return {"tasks": dict(records), "data_sha256": by_split}


def warn_of_other_data(config: str | None, content: Mapping[str, Any]) -> None:
    """Warns if `--config` is the `run.json` of a run on other data."""
    recorded = read_yaml(config, "--config").get("data_sha256") if config else None
    if not isinstance(recorded, dict):
        return
    for split, current in content["data_sha256"].items():
        if recorded.get(split, current) != current:
            logging.warning(
                "This does not repeat %s: that run used other %s examples.", config, split
            )


def decisive(values: Mapping[str, Value], without: Collection[str] = ()) -> dict[str, Value]:
    """Returns the settings that determine a run and its results."""
    ignored = (*settings.FREE, *without)
    return {name: as_compared(name, value) for name, value in values.items() if name not in ignored}


def fingerprint_of(
    config: RunConfig, content: Mapping[str, Any] | None = None, is_evaluated: bool = False
) -> Fingerprint:
    """Returns the fingerprint of a run; without a run id while its content is unknown."""
    content = content or {}
    read = _read_in_training(content)
    defaults = {**config.defaults, **settings.EARLIER}
    every = decisive(config.values)
    training = decisive(config.values, settings.ONLY_RESULTS)
    results = {name: value for name, value in every.items() if name not in training}
    if config.actions.do_export:  # Elsewhere it changes nothing.
        results["merge"] = config.actions.merge
    actions = settings.with_role(Role.APPLY, Role.EXPORT)
    return Fingerprint(
        run_id=run_digest(config.values, defaults, read) if content else "",
        training=training,
        results=results,
        defaults=defaults,
        actions=tuple(name for name in actions if config.value(name)),
        is_evaluated=is_evaluated,
        content=content,
        compared=("data_sha256", "base", "adapter", *INITIAL),
        read=read,
        scored=_read_in_selection(config, content),
        newer=(NORMS,),
    )


def run_digest(
    values: Mapping[str, Value], defaults: Mapping[str, Value], read: Mapping[str, Any]
) -> str:
    """Returns the digest of a training: its settings without paths, and what it reads.

    Settings with their default do not count, so that a new setting changes no digest.
    """
    determining = decisive(values, (*settings.ONLY_RESULTS, *settings.PATHS, *SEEN_IN_CONTENT))
    changed = {n: v for n, v in determining.items() if v is not None and v != defaults.get(n)}
    base = {name: read["base"].get(name) for name in BASE}
    if TOKENIZER in read["base"]:  # Absent for most bases, and in records of earlier versions.
        base[TOKENIZER] = read["base"][TOKENIZER]
    return digest([changed, {**read, "base": base}])


def _read_in_training(content: Mapping[str, Any]) -> dict[str, Any]:
    if not content:
        return {}
    read = {
        "training data": content["data_sha256"].get("train"),
        "base": content["base"],
        "adapter": content["adapter"],
    }
    return read | {name: content[name] for name in INITIAL if name in content}


def _read_in_selection(config: RunConfig, content: Mapping[str, Any]) -> dict[str, Any]:
    """Returns digests of the data that decides which weights are kept."""
    if not content or not (config.evaluation.keep == "best" or config.evaluation.patience):
        return {}
    digests = content["data_sha256"]
    return {"development data": {n: v for n, v in digests.items() if role(n) == "dev"}}
