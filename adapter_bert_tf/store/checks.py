"""What `adapter_config.json` may say: types of its values, and which of them can be."""

import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.methods.multitask import MultitaskConfig, check_task_names
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base.config import LARGEST
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.contents import adapter_of, tuning_of
from adapter_bert_tf.store.multitask import NAME, OF_TASK, SEVERAL, TASKS, is_several, names_of
from adapter_bert_tf.task_types import TaskType, type_of
from adapter_bert_tf.training.tuning import MODULE_GROUPS

FIELDS: dict[str, type | tuple[type, ...]] = {
    "method": str,
    "tuning": dict,
    "adapter": (dict, type(None)),
    "task": str,
    "head": str,
    "labels": list,
    "regression": bool,
    "inputs": dict,
    "metric": (dict, type(None)),
    "base": dict,
    "versions": dict,
    "command": str,
    "weights_sha256": str,
    "sha256": str,
}

# What may be there as well, and what the base's fingerprint says besides its sizes.
OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "global_step": int,
    "split_seed": (int, type(None)),
    "fold": dict,  # Of cross-validation.
    "base_model": dict,
}
OF_SOME = OPTIONAL | {NAME: str}  # Of the tasks of several.
FINGERPRINT: dict[str, type | tuple[type, ...]] = {
    "lower_case": bool,
    "activation": str,
    "norm_epsilon": (int, float),
    "vocabulary_sha256": str,
    "weights_sha256": (str, type(None)),
}
# How a table of the user's own is read, by flag; adapters of other tasks say nothing of it.
TABLE: dict[str, type | tuple[type, ...]] = {
    "text_a_column": str,
    "text_b_column": str,
    "label_column": str,
    "header": bool,
    "regression": bool,
    "multi_label": bool,
    "task_type": str,
}
DIGEST = re.compile("[0-9a-f]{64}")
NORMS = "layer_norms_sha256"  # In a fingerprint, but not in those of earlier versions.


def wrong_fields(
    fields: Mapping[str, type | tuple[type, ...]], values: Mapping[str, Any]
) -> list[str]:
    """Names of the fields that are missing or of another type; True is no number."""
    return [
        name
        for name, kind in fields.items()
        if not isinstance(value := values.get(name, ...), kind)
        or (isinstance(value, bool) and kind is not bool)
    ]


def check(config, where):
    """Checks values. Raises `InputError`."""
    _check_sizes(config["base"], where)
    if not isinstance(config.get("name", ""), str):
        raise InputError(f"{where}: name must be text. Received: {preview(config['name'])}")
    if not isinstance(config.get("run", ""), str):  # Older ones have none.
        raise InputError(f"{where}: run must be a string. Received: {preview(config['run'])}")
    _check_origin(config.get("base_model"), where)
    if is_several(config):
        _check_tasks(config, where)
    else:
        _check_task(config, where)
    tuning = _known_tuning(config, where)
    if config["method"] != tuning.method:
        raise InputError(
            f"{where}: method {preview(config['method'])} and tuning {tuning.method!r} "
            "contradict each other."
        )
    if tuning.of_several_tasks != is_several(config):
        raise InputError(
            f"{where}: {tuning.method!r} trains {'' if tuning.of_several_tasks else 'no '}several "
            f"tasks together. Received: the head {preview(config['head'])}"
        )
    _check_adapter(config, where)


def _check_origin(origin: Any, where: str) -> None:
    """Where the base is from, if it is said. Raises `InputError`."""
    optional = (str, type(None))
    fields: dict[str, type | tuple[type, ...]]
    fields = {"name": str, "kind": str, "revision": optional, "license": optional}
    if origin is not None and wrong_fields(fields, origin):
        raise InputError(
            f"{where}: base_model has a name, a kind, a revision and a license. Received: "
            f"{preview(origin)}"
        )


def _check_tasks(config: Mapping[str, Any], where: str) -> None:
    """What is said of several tasks: of each what is said of one. Raises `InputError`."""
    tasks: Any = config.get(TASKS)
    known = isinstance(tasks, list) and all(isinstance(task, dict) for task in tasks)
    of_one = {name: FIELDS[name] for name in OF_TASK}
    if not known or any(
        wrong_fields(of_one | {n: OF_SOME[n] for n in OF_SOME if n in task}, task) for task in tasks
    ):
        raise InputError(f"{where}: tasks must be a list of tasks. Received: {preview(tasks)}")
    try:
        check_task_names(tuple(names_of(config)))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    for task in tasks:
        if task["head"] == SEVERAL:
            raise InputError(f"{where}: {preview(task['task'])} cannot be several tasks itself.")
    _check_metric(config["metric"], where)
    for name, task in zip(names_of(config), config[TASKS], strict=True):
        _check_task(config | task, f"{where}: {name}")


def _check_task(config: Mapping[str, Any], where: str) -> None:
    """What is said of one task. Raises `InputError`."""
    try:
        kind = type_of(config)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    labels = config["labels"]
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
        raise InputError(f"{where}: labels must be different strings. Received: {preview(labels)}")
    try:
        kind.check_labels(labels)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    _check_inputs(config, kind, where)
    _check_table(config.get("table", {}), where)
    _check_metric(config["metric"], where)


def plain_metric(metric: Any) -> Any:
    """A metric as JSON can say it: its value may be NumPy's."""
    value = metric.get("value") if isinstance(metric, Mapping) else None
    return {**metric, "value": value.item()} if isinstance(value, np.generic) else metric


def _check_metric(metric: Any, where: str) -> None:
    if metric is not None and not (isinstance(metric, Mapping) and _is_metric(metric)):
        raise InputError(
            f"{where}: metric needs a name, a finite value and a split. Received: {preview(metric)}"
        )


def _check_adapter(config: Mapping[str, Any], where: str) -> None:
    try:
        adapter = adapter_of(config)
        if adapter:
            adapter.specs(config["base"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    group = MODULE_GROUPS.get(config["method"])
    if group and group not in (adapter.groups if adapter else ()):
        raise InputError(
            f"{where}: the method {config['method']} trains {group!r}, and there is no such part. "
            f"Received: {preview(config['adapter'])}"
        )
    _check_members(adapter, config.get("members"), where)
    names = names_of(config) if is_several(config) else None
    if isinstance(adapter, MultitaskConfig) and list(adapter.tasks) != names:
        raise InputError(
            f"{where}: there must be parts of each task. Received: those of "
            f"{preview(adapter.tasks)}"
        )


def _check_members(adapter: ModuleConfig | None, digests: Any, where: str) -> None:
    """A fusion names the digest of each member; nothing else has members."""
    names = adapter.members if isinstance(adapter, FusionConfig) else ()
    listed = isinstance(digests, list) and all(
        isinstance(digest, str) and DIGEST.fullmatch(digest) for digest in digests
    )
    if names and (not listed or len(digests) != len(names)):
        raise InputError(
            f"{where}: a fusion of {len(names)} needs as many members, by digest. Received: "
            f"{preview(digests)}"
        )
    if digests is not None and not names:
        raise InputError(f"{where}: only a fusion has members. Received: {preview(digests)}")


def _is_metric(metric):
    value = metric.get("value")
    return (
        isinstance(metric.get("name"), str)
        and isinstance(metric.get("split"), str)
        and type(value) in (int, float)
        and abs(value) <= sys.float_info.max  # Not so NaN.
    )


def _check_inputs(config: Mapping[str, Any], kind: TaskType, where: str) -> None:
    defaults, values = kind.inputs, config["inputs"]
    wrong = [
        name
        for name, default in defaults.items()
        if type(values.get(name)) is not type(default) or not -1e9 < values[name] < 1e9
    ]
    if wrong or set(values) != set(defaults):
        raise InputError(
            f"{where}: inputs must be like {dict(defaults)}. Received: {preview(values)}"
        )
    longest = config["base"]["max_sequence_length"]
    if values["max_seq_length"] > longest:
        raise InputError(
            f"{where}: the base reads at most {longest} word pieces. Received: "
            f"max_seq_length {values['max_seq_length']}"
        )
    try:
        kind.check_inputs(values)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _check_table(table: Any, where: str) -> None:
    known = isinstance(table, dict) and table.keys() <= TABLE.keys()
    if not known or any(name in table for name in wrong_fields(TABLE, table)):
        raise InputError(f"{where}: table must be like {list(TABLE)}. Received: {preview(table)}")


def _check_sizes(base, where):
    wrong = {
        name: base.get(name)
        for name, most in LARGEST.items()
        if type(base.get(name)) is not int or not 0 < base[name] <= most
    }
    wrong |= {name: base.get(name, "nothing") for name in wrong_fields(FINGERPRINT, base)}
    if type(base.get(NORMS)) not in (str, type(None)):
        wrong[NORMS] = base[NORMS]
    if wrong or base["hidden_size"] % base["num_attention_heads"]:
        raise InputError(
            f"{where}: these sizes of the base cannot be: {preview(wrong or base, 400)}"
        )


def _known_tuning(config, where):
    """The `Tuning` of a config. Raises `InputError`, of the file and not of an argument."""
    try:
        tuning = tuning_of(config)
        tuning.check_depth(config["base"]["num_layers"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return tuning
