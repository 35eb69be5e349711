"""`adapter_config.json`: made, sealed with a digest of itself, and read."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.errors import Damaged
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sanitize import parse_json, preview
from adapter_bert_tf.store import checks
from adapter_bert_tf.store.multitask import SEVERAL
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
    """Makes the config of an adapter directory, without digests. Raises `InputError`.

    `base` is the fingerprint of the base. `head` is a task type, or `SEVERAL`; `classification`
    without labels stands for scores. `inputs` are values that differ from the defaults of the type,
    `more` values that replace those made here.
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


def seal(config: Mapping[str, Any], weights_sha256: str) -> dict[str, Any]:
    """The config with the digests of the weights and of itself."""
    values = {k: v for k, v in config.items() if k != "sha256"} | {"weights_sha256": weights_sha256}
    return values | {"sha256": _digest(values)}


def _digest(config: Mapping[str, Any]) -> str:
    try:
        text = json.dumps({k: v for k, v in config.items() if k != "sha256"}, sort_keys=True)
    except RecursionError as error:
        raise Damaged("An adapter's config is nested too deeply.") from error
    return hashlib.sha256(text.encode()).hexdigest()


def parse(text: str, where: str) -> dict[str, Any]:
    """Parses and checks the text of a config. Raises `InputError`, which begins with `where`."""
    try:
        config = parse_json(text, distinct=True)
    except ValueError as error:
        raise Damaged(f"{where} is damaged, no valid JSON: {error}") from error
    if not isinstance(config, dict):
        raise Damaged(f"{where} is damaged: it must hold a JSON object.")
    if wrong := checks.wrong_fields(config, checks.FIELDS, checks.OPTIONAL):
        raise Damaged(f"{where} misses {wrong}, or they are of another type.")
    if config["sha256"] != _digest(config):
        raise Damaged(
            f"{where} is damaged or was edited: its content is not what was written. "
            "Save the adapter again from Python instead of editing the file."
        )
    _check_unicode(config, where)
    checks.check(config, where)
    return config


def _check_unicode(config: Mapping[str, Any], where: str) -> None:
    """Raises `InputError` for lone surrogates, which TensorFlow and files cannot hold."""
    # A command line may have the name of a file that is not valid text.
    text = json.dumps({k: v for k, v in config.items() if k != "command"}, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        part = preview(text[max(error.start - 40, 0) : error.end + 40])
        raise Damaged(f"{where} is damaged: {part} has half of a character.") from error
