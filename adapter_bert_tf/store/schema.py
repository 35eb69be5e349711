"""What `adapter_config.json` may say, and which variables must then be in the file beside it."""

import dataclasses
import hashlib
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.kinds import PartsConfig
from adapter_bert_tf.adapters.specs import BASE_GROUPS, Spec, base_specs, norm_names
from adapter_bert_tf.base.config import LARGEST
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import HEADS, Head, head_of
from adapter_bert_tf.received import parse_json, shown
from adapter_bert_tf.store.versions import versions
from adapter_bert_tf.training.trained import Tuning, is_trained

LARGEST_CONFIG = 1 << 20
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
}
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
}
NORMS = "layer_norms_sha256"  # In a fingerprint, but not in those of earlier versions.


def describe(
    task: str,
    labels: Sequence[str],
    base: Mapping[str, Any],
    tuning: Tuning,
    adapter: PartsConfig | None = None,
    head: str = "classification",
    inputs: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What the config of an adapter directory says, but for its digests.

    Args:
      task: its name.
      labels: label strings in the order of their ids; none for regression.
      base: fingerprint of the base.
      tuning: `Tuning`.
      adapter: `PartsConfig`, or None.
      head: `classification`, also for regression, or `span`.
      inputs: dict, where it differs from the head's own.
      **more: other values, or other than those made here.
    """
    return {
        "method": tuning.method,
        "tuning": dataclasses.asdict(tuning),
        "adapter": adapter.to_dict() if adapter else None,
        "task": task,
        "head": head,
        "labels": list(labels),
        "regression": not labels,
        "metric": None,
        "inputs": _default_inputs(head, base) | dict(inputs or {}),
        "base": base,
        "versions": versions(),
        "command": "",
    } | more


def _default_inputs(head: str, base: Mapping[str, Any]) -> dict[str, Any]:
    longest = base["max_sequence_length"]
    most = {"max_seq_length": longest, "max_query_length": longest // 2}
    defaults = HEADS[head].inputs if head in HEADS else {}
    return {
        name: min(value, most[name]) if name in most else value for name, value in defaults.items()
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
    wrong = [*_wrong(FIELDS, config), *(n for n in _wrong(OPTIONAL, config) if n in config)]
    if wrong:
        raise InputError(f"{where} misses {wrong}, or they are of another type.")
    if config["sha256"] != _digest(config):
        raise InputError(
            f"{where} is damaged or was edited: its content is not what was written. "
            "Save the adapter again from Python instead of editing the file."
        )
    _check_texts(config, where)
    check(config, where)
    return config


def _wrong(fields: Mapping[str, type | tuple[type, ...]], values: Mapping[str, Any]) -> list[str]:
    """Names of the fields that are missing or of another type; True is no number."""
    return [
        name
        for name, kind in fields.items()
        if not isinstance(value := values.get(name, ...), kind)
        or (isinstance(value, bool) and kind is not bool)
    ]


def _check_texts(config: Mapping[str, Any], where: str) -> None:
    """Raises `InputError` for what is no Unicode text: TensorFlow and files cannot hold it."""
    # A command line may name a file whose name is none.
    texts = json.dumps({k: v for k, v in config.items() if k != "command"}, ensure_ascii=False)
    try:
        texts.encode("utf-8")
    except UnicodeEncodeError as error:
        part = shown(texts[max(error.start - 40, 0) : error.end + 40])
        raise InputError(f"{where} is damaged: a half of a character stands in {part}.") from error


def check(config, where):
    """Checks values. Raises `InputError`."""
    _check_sizes(config["base"], where)
    try:
        head = head_of(config)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    if not isinstance(config.get("name", ""), str):
        raise InputError(f"{where}: name must be text. Received: {shown(config['name'])}")
    labels = config["labels"]
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
        raise InputError(f"{where}: labels must be different strings. Received: {shown(labels)}")
    if config["regression"] == bool(labels):
        raise InputError(
            f"{where}: a classifier has labels, a regression has none. Received: {shown(labels)}"
        )
    if not isinstance(config.get("run", ""), str):  # Older ones have none.
        raise InputError(f"{where}: run must be a string. Received: {shown(config['run'])}")
    _check_inputs(config, head, where)
    _check_table(config.get("table", {}), where)
    metric = config["metric"]
    if metric is not None and not _is_metric(metric):
        raise InputError(
            f"{where}: metric needs a name, a finite value and a split. Received: {shown(metric)}"
        )
    tuning = _known_tuning(config, where)
    if config["method"] != tuning.method:
        raise InputError(
            f"{where}: method {shown(config['method'])} and tuning {tuning.method!r} "
            "contradict each other."
        )
    _check_adapter(config, where)


def _check_adapter(config: Mapping[str, Any], where: str) -> None:
    try:
        adapter = adapter_of(config)
        if adapter:
            adapter.specs(config["base"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _is_metric(metric):
    value = metric.get("value")
    return (
        isinstance(metric.get("name"), str)
        and isinstance(metric.get("split"), str)
        and type(value) in (int, float)
        and abs(value) <= sys.float_info.max  # Not so NaN.
    )


def _check_inputs(config: Mapping[str, Any], head: Head, where: str) -> None:
    defaults, values = head.inputs, config["inputs"]
    wrong = [
        name
        for name, default in defaults.items()
        if type(values.get(name)) is not type(default) or not -1e9 < values[name] < 1e9
    ]
    if wrong or set(values) != set(defaults):
        raise InputError(
            f"{where}: inputs must be like {dict(defaults)}. Received: {shown(values)}"
        )
    longest = config["base"]["max_sequence_length"]
    if values["max_seq_length"] > longest:
        raise InputError(
            f"{where}: the base reads at most {longest} word pieces. Received: "
            f"max_seq_length {values['max_seq_length']}"
        )
    try:
        head.check_inputs(values)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _check_table(table: Any, where: str) -> None:
    known = isinstance(table, dict) and table.keys() <= TABLE.keys()
    if not known or any(name in table for name in _wrong(TABLE, table)):
        raise InputError(f"{where}: table must be like {list(TABLE)}. Received: {shown(table)}")


def _check_sizes(base, where):
    wrong = {
        name: base.get(name)
        for name, most in LARGEST.items()
        if type(base.get(name)) is not int or not 0 < base[name] <= most
    }
    wrong |= {name: base.get(name, "nothing") for name in _wrong(FINGERPRINT, base)}
    if type(base.get(NORMS)) not in (str, type(None)):
        wrong[NORMS] = base[NORMS]
    if wrong or base["hidden_size"] % base["num_attention_heads"]:
        raise InputError(f"{where}: these sizes of the base cannot be: {shown(wrong or base, 400)}")


def _known_tuning(config, where):
    """The `Tuning` of a config. Raises `InputError`, of the file and not of an argument."""
    try:
        tuning = tuning_of(config)
        tuning.check_depth(config["base"]["num_layers"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return tuning


def tuning_of(config):
    """The `Tuning` of a config. Raises `InputError`."""
    values = config["tuning"]
    kinds = {"method": str, "top_k": int, "train_layer_norm": bool, "train_pooler": bool}
    wrong = [
        name
        for name, value in values.items()
        if name not in kinds or type(value) is not kinds[name]
    ]
    if wrong or "method" not in values:
        raise InputError(
            f"tuning holds {shown(wrong)}, unknown or of another type."
            if wrong
            else f"tuning has no method. Received: {shown(values)}"
        )
    return Tuning(**values)


def name_of(config: Mapping[str, Any]) -> str:
    """What the adapter is called: its task's name, or the one that it was given."""
    name: str = config.get("name") or config["task"]
    return name


def named(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The config of the same adapter under a name."""
    rest = {key: value for key, value in config.items() if key != "name"}
    return rest if name == config["task"] else rest | {"name": name}


def adapter_of(config: Mapping[str, Any]) -> PartsConfig | None:
    """The `PartsConfig` of a config, or None. Raises `InputError`."""
    return PartsConfig.from_dict(config["adapter"]) if config["adapter"] else None


def num_outputs(config: Mapping[str, Any]) -> int:
    """Width of the head: one for each label, 1 for regression."""
    return head_of(config).num_outputs(config["labels"])


def expected_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Dict from common name to shape: what the weights' file must hold, and nothing else."""
    sizes, adapter, head = config["base"], adapter_of(config), head_of(config)
    specs = base_specs(sizes) | (adapter.specs(sizes) if adapter else {})
    specs |= head.specs(sizes["hidden_size"], config["labels"])
    kept = kept_names(specs, sizes["num_layers"], tuning_of(config), head.unused)
    return {name: specs[name].shape for name in kept}


def brings_norms(config: Mapping[str, Any]) -> bool:
    """Whether an adapter has all LayerNorms of its own, so that the base's do not matter."""
    shapes, depth = expected_shapes(config), config["base"]["num_layers"]
    return all(f"{name}/gamma" in shapes for name in norm_names(depth))


def kept_names(
    specs: Mapping[str, Spec], num_layers: int, tuning: Tuning, unused: Collection[str] = ()
) -> list[str]:
    """Names of the variables that a file must hold: what is trained, and all that parts have.

    Args:
      specs: dict from common name to `Spec`, of all variables of a model.
      num_layers: of the encoder.
      tuning: `Tuning`.
      unused: groups that no output depends on.
    """
    return [
        name
        for name, spec in specs.items()
        if spec.group not in BASE_GROUPS or is_trained(spec, num_layers, tuning, unused)
    ]


def kept_variables(model: Any, tuning: Tuning) -> dict[str, tf.Variable]:
    """Dict from common name to variable: those of a model that a file must hold."""
    named, depth = model.named_variables(), model.encoder.config["num_layers"]
    return {name: named[name] for name in kept_names(model.specs(), depth, tuning, model.unused)}
