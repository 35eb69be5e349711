"""Checks of the values in `adapter_config.json`."""

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.multitask import check_task_names
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base.config import LARGEST
from adapter_bert_tf.base.tokenizer_settings import TOKENIZER
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.contents import adapter_of, tuning_of
from adapter_bert_tf.store.multitask import NAME, OF_TASK, SEVERAL, TASKS, is_several, names_of
from adapter_bert_tf.task_types import TaskType, type_of
from adapter_bert_tf.training.tuning import METHODS

Types = Mapping[str, type | tuple[type, ...]]
TEXT_OR_NONE = (str, type(None))
FIELDS: Types = {
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
DERIVED = "derived"  # How an adapter was made from others, by one of these, without training.
OPERATIONS = {
    "average": "Combined from",
    "generate": "Generated for one task by",
    "drop": "Without adapters in the lowest layers, from",
    "import": "Imported from",
}
# Fields that earlier versions, or some tasks, do not have; `fold` is that of cross-validation.
OPTIONAL: Types = {
    NAME: str,
    "run": str,
    "global_step": int,
    "split_seed": (int, type(None)),
    "dev_share": float,
    "dev_by_hash": bool,
    "fold": dict,
    "base_model": dict,
    DERIVED: dict,
}
SOURCE: Types = {"name": str, "sha256": TEXT_OR_NONE, "command": str}
ORIGIN: Types = {"name": str, "kind": str, "revision": TEXT_OR_NONE, "license": TEXT_OR_NONE}
NORMS = "layer_norms_sha256"  # In a fingerprint, but not in those of earlier versions.
# Fields of a base's fingerprint in addition to its sizes.
FINGERPRINT: Types = {
    "lower_case": bool,
    "activation": str,
    "norm_epsilon": (int, float),
    "vocabulary_sha256": str,
    "weights_sha256": TEXT_OR_NONE,
}
# How a table of the user's own is read, by flag; adapters of other tasks have no such fields.
TABLE: Types = {
    "text_a_column": str,
    "text_b_column": str,
    "label_column": str,
    "header": bool,
    "delimiter": str,
    "quoted": bool,
    "encoding": str,
    "regression": bool,
    "multi_label": bool,
    "task_type": str,
}
METRIC: Types = {"name": str, "split": str}
DIGEST = re.compile("[0-9a-f]{64}")


def wrong_fields(values: Mapping[str, Any], required: Types, optional: Types) -> list[str]:
    """Names of the fields that are missing or of another type; True is not a number."""
    types = {**required, **{name: optional[name] for name in optional if name in values}}
    return [
        name
        for name, kind in types.items()
        if not isinstance(value := values.get(name, ...), kind)
        or (isinstance(value, bool) and kind is not bool)
    ]


@contextlib.contextmanager
def prefixed(where: str) -> Iterator[None]:
    """Returns a context that puts `where` before the message of an `InputError`."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{where}: {error}") from error


def check(config: Mapping[str, Any], where: str) -> None:
    """Checks the values of a config whose fields have the right types. Raises `InputError`."""
    with prefixed(where):
        _check_base(config["base"], config.get("base_model"))
        _check_derived(config.get(DERIVED))
        if is_several(config):
            _check_tasks(config)
        else:
            _check_task(config)
        tuning = tuning_of(config)
        tuning.check_depth(config["base"]["num_layers"])
        if config["method"] != tuning.method:
            raise InputError(
                f"method {preview(config['method'])} and tuning {tuning.method!r} contradict each "
                "other."
            )
        if tuning.of_several_tasks != is_several(config):
            raise InputError(
                f"{tuning.method!r} trains {'' if tuning.of_several_tasks else 'no '}several tasks "
                f"together. Received: the head {preview(config['head'])}"
            )
        _check_adapter(config)


def _check_base(base: Mapping[str, Any], origin: Mapping[str, Any] | None) -> None:
    wrong = {
        name: base.get(name)
        for name, most in LARGEST.items()
        if type(base.get(name)) is not int or not 0 < base[name] <= most
    }
    names = wrong_fields(base, FINGERPRINT, {NORMS: TEXT_OR_NONE, TOKENIZER: dict})
    wrong |= {name: base.get(name, "nothing") for name in names}
    if wrong or base["hidden_size"] % base["num_attention_heads"]:
        raise InputError(f"these sizes of the base cannot be: {preview(wrong or base, 400)}")
    if origin is not None and wrong_fields(origin, ORIGIN, {}):
        raise InputError(f"base_model needs {list(ORIGIN)}. Received: {preview(origin)}")


def _check_derived(derived: Mapping[str, Any] | None) -> None:
    if derived is None:
        return
    sources = derived.get("sources")
    valid = isinstance(sources, list) and all(
        isinstance(source, dict) and not wrong_fields(source, SOURCE, {}) for source in sources
    )
    valid = valid and isinstance(derived.get("options", {}), dict)
    if not valid or str(derived.get("operation")) not in OPERATIONS:
        raise InputError(
            f"derived needs one of {list(OPERATIONS)} as operation, and sources with "
            f"{list(SOURCE)}. Received: {preview(derived)}"
        )


def _check_tasks(config: Mapping[str, Any]) -> None:
    """Checks the tasks of a config of several, each as the config of one."""
    tasks: Any = config.get(TASKS)
    required = {name: FIELDS[name] for name in OF_TASK}
    if not isinstance(tasks, list) or any(
        not isinstance(task, dict) or wrong_fields(task, required, OPTIONAL) for task in tasks
    ):
        raise InputError(f"tasks must be a list of tasks. Received: {preview(tasks)}")
    check_task_names(tuple(names_of(config)))
    check_metric(config["metric"])
    for name, task in zip(names_of(config), tasks, strict=True):
        if task["head"] == SEVERAL:
            raise InputError(f"{preview(name)} cannot be several tasks itself.")
        with prefixed(name):
            _check_task(config | task)


def _check_task(config: Mapping[str, Any]) -> None:
    kind, labels = type_of(config), config["labels"]
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
        raise InputError(f"labels must be different strings. Received: {preview(labels)}")
    kind.check_labels(labels)
    _check_inputs(config, kind)
    table = config.get("table", {})
    if (
        not isinstance(table, dict)
        or not table.keys() <= TABLE.keys()
        or wrong_fields(table, {}, TABLE)
    ):
        raise InputError(f"table must be like {list(TABLE)}. Received: {preview(table)}")
    check_metric(config["metric"])


def _check_inputs(config: Mapping[str, Any], kind: TaskType) -> None:
    defaults, values = kind.inputs, config["inputs"]
    if set(values) != set(defaults) or any(
        type(values[name]) is not type(default) or not _is_moderate(values[name])
        for name, default in defaults.items()
    ):
        raise InputError(f"inputs must be like {dict(defaults)}. Received: {preview(values)}")
    longest = config["base"]["max_sequence_length"]
    if values["max_seq_length"] > longest:
        raise InputError(
            f"the base reads at most {longest} word pieces. Received: max_seq_length "
            f"{values['max_seq_length']}"
        )
    kind.check_inputs(values)


def _is_moderate(value: Any) -> bool:
    """Whether a number is within bounds, and a text short."""
    return len(value) < 100 if isinstance(value, str) else bool(-1e9 < value < 1e9)


def plain_metric(metric: Any) -> Any:
    """A metric whose value JSON can hold; it may be NumPy's."""
    value = metric.get("value") if isinstance(metric, Mapping) else None
    return {**metric, "value": value.item()} if isinstance(value, np.generic) else metric


def check_metric(metric: Any) -> None:
    """Raises `InputError` unless a metric is None or has a name, a finite value and a split."""
    if metric is None:
        return
    valid = isinstance(metric, Mapping) and not wrong_fields(metric, METRIC, {})
    if not valid or not (
        type(metric.get("value")) in (int, float)
        and abs(metric["value"]) <= sys.float_info.max  # False for NaN.
    ):
        raise InputError(
            f"metric needs a name, a finite value and a split. Received: {preview(metric)}"
        )


def _check_adapter(config: Mapping[str, Any]) -> None:
    """Checks the modules: their sizes, and that they are those of the method and the tasks."""
    adapter = adapter_of(config)
    if adapter:
        adapter.specs(config["base"])
    group = METHODS[config["method"]].modules
    if group and group not in (adapter.groups if adapter else ()):
        raise InputError(
            f"the method {config['method']} trains {group!r}, and there is no such part. Received: "
            f"{preview(config['adapter'])}"
        )
    _check_members(adapter, config.get("members"))
    names = names_of(config) if is_several(config) else None
    if adapter and adapter.task_names and list(adapter.task_names) != names:
        raise InputError(
            f"there must be parts of each task. Received: those of {preview(adapter.task_names)}"
        )


def _check_members(adapter: ModuleConfig | None, digests: Any) -> None:
    """A fusion or a stack names the digest of each member; nothing else has members."""
    count = len(adapter.member_names) if adapter else 0
    if count == 0 and digests is None:
        return
    valid = isinstance(digests, list) and all(
        isinstance(digest, str) and DIGEST.fullmatch(digest) for digest in digests
    )
    if not valid or not count or len(digests) != count:
        raise InputError(
            f"an adapter of {count} others names each by its digest; one of none has no members. "
            f"Received: {preview(digests)}"
        )
