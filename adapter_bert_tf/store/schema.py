"""`adapter_config.json`: made, sealed with a digest of itself, and read."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json, preview
from adapter_bert_tf.store import checks
from adapter_bert_tf.store.multitask import SEVERAL
from adapter_bert_tf.store.versions import installed_versions
from adapter_bert_tf.task_types import TaskType, type_named
from adapter_bert_tf.training.tuning import Tuning

LARGEST_CONFIG = 1 << 20


def describe(
    task: str,
    labels: Sequence[str],
    base: Mapping[str, Any],
    tuning: Tuning,
    adapter: ModuleConfig | None = None,
    head: str = "classification",
    inputs: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What the config of an adapter directory says, but for its digests.

    Args:
      task: its name.
      labels: label strings in the order of their ids, if the type has labels.
      base: fingerprint of the base.
      tuning: `Tuning`.
      adapter: `ModuleConfig`, or None.
      head: name of the task type, or `SEVERAL`; `classification` without labels stands for
        scores.
      inputs: dict, where it differs from the head's own.
      **more: other values, or other than those made here.

    Raises:
      InputError: for an unknown type.
    """
    kind = None if head == SEVERAL else type_named(head, labels)
    fields = kind.file_fields() if kind else {"head": head, "regression": False}
    return {
        "method": tuning.method,
        "tuning": dataclasses.asdict(tuning),
        "adapter": adapter.to_dict() if adapter else None,
        "task": task,
        "head": fields["head"],
        "labels": list(labels),
        "regression": fields["regression"],
        "metric": None,
        "inputs": (_default_inputs(kind, base) if kind else {}) | dict(inputs or {}),
        "base": base,
        "versions": installed_versions(),
        "command": "",
    } | more


def _default_inputs(kind: TaskType, base: Mapping[str, Any]) -> dict[str, Any]:
    longest = base["max_sequence_length"]
    most = {"max_seq_length": longest, "max_query_length": longest // 2}
    return {
        name: min(value, most[name]) if name in most else value
        for name, value in kind.inputs.items()
    }


def seal(config, weights_sha256):
    """The config with the digests of the weights and of itself."""
    config = {k: v for k, v in config.items() if k != "sha256"} | {"weights_sha256": weights_sha256}
    return config | {"sha256": _digest(config)}


def _digest(config):
    try:
        text = json.dumps({k: v for k, v in config.items() if k != "sha256"}, sort_keys=True)
    except RecursionError as error:
        raise InputError("An adapter's config is nested too deeply.") from error
    return hashlib.sha256(text.encode()).hexdigest()


def parse(text, where):
    """The config in a JSON text.

    Raises:
      InputError: when it is no such config, was changed after it was written, or says something
        that cannot be.
    """
    try:
        config = parse_json(text, distinct=True)
    except ValueError as error:
        raise InputError(f"{where} is damaged, no valid JSON: {error}") from error
    if not isinstance(config, dict):
        raise InputError(f"{where} is damaged: it must hold a JSON object.")
    optional = checks.wrong_fields(checks.OPTIONAL, config)
    wrong = [
        *checks.wrong_fields(checks.FIELDS, config),
        *(name for name in optional if name in config),
    ]
    if wrong:
        raise InputError(f"{where} misses {wrong}, or they are of another type.")
    if config["sha256"] != _digest(config):
        raise InputError(
            f"{where} is damaged or was edited: its content is not what was written. "
            "Save the adapter again from Python instead of editing the file."
        )
    _check_texts(config, where)
    checks.check(config, where)
    return config


def _check_texts(config: Mapping[str, Any], where: str) -> None:
    """Raises `InputError` for what is no Unicode text: TensorFlow and files cannot hold it."""
    # A command line may name a file whose name is none.
    texts = json.dumps({k: v for k, v in config.items() if k != "command"}, ensure_ascii=False)
    try:
        texts.encode("utf-8")
    except UnicodeEncodeError as error:
        part = preview(texts[max(error.start - 40, 0) : error.end + 40])
        raise InputError(f"{where} is damaged: a half of a character stands in {part}.") from error
