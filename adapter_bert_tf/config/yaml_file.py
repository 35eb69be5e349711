"""YAML files of settings, parsed with bounds on what a file may hold."""

import datetime
import math
import sys
from typing import Any

import yaml

from adapter_bert_tf.errors import Damaged, InputError, Unavailable
from adapter_bert_tf.sanitize import preview, truncate

SCALARS = (str, int, float, datetime.date)
LARGEST_FILE = 4 << 20
MAX_VALUES = 200_000  # With every alias (`*name`) expanded.


def read_yaml(path: str, flag: str, expected: str = "`setting: value` lines") -> dict[Any, Any]:
    """Reads the dict in a local or remote YAML file, which a flag names. Raises `InputError`."""
    try:
        content = parse_yaml(_read_text(path, flag))
    except InputError:
        raise
    except (OSError, ValueError) as error:
        kind = Unavailable if isinstance(error, OSError) else Damaged
        raise kind(f"Cannot read {flag}={path}: {truncate(str(error), 400)}") from error
    content = {} if content is None else content
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold {expected}. Received: {preview(content)}")
    return content


def _read_text(path: str, flag: str) -> str:
    if "://" not in path:
        with open(path, "rb") as file:
            return _decode(file.read(LARGEST_FILE + 1))
    from adapter_bert_tf import storage

    try:
        return _decode(storage.read_bytes(path, LARGEST_FILE + 1))
    except OSError as error:
        raise Unavailable(f"Cannot read {flag}={path}: {storage.reason(error)}") from error


def _decode(content: bytes) -> str:
    if len(content) > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
    return content.decode("utf-8")


def as_text(value: Any) -> str:
    """Returns a scalar of a file as text of the command line. Raises `InputError`."""
    is_scalar = isinstance(value, SCALARS)
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        is_scalar = False  # Python does not write out numbers of 4,300 digits.
    if not is_scalar or "\0" in str(value):
        raise InputError(f"must be one value. Received: {preview(value)}")
    return str(value)


def parse_yaml(text: str) -> Any:
    """Parses one YAML document; None for an empty one. Raises `ValueError`.

    Only numbers as Python writes them are numbers. 01 and 2026_11_26, which YAML 1.1 reads as 1
    and 20261126, stay text: they may be names.
    """
    try:
        return _Loader(text).get_single_data()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except yaml.YAMLError as error:
        raise ValueError(truncate(" ".join(str(error).split()), 400)) from error
    # PyYAML raises these for values that do not fit their tag.
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise ValueError(f"a value does not fit its tag ({error!r})") from error


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with bounds on aliases and without duplicate keys."""

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _count_values(node, {}) > MAX_VALUES:
            raise ValueError(
                f"it expands to more than {MAX_VALUES:,} values. Write them without aliases "
                "(`*name`)"
            )
        return node

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        is_float = node.tag.endswith(":float")
        value = self.construct_yaml_float(node) if is_float else self.construct_yaml_int(node)
        if not abs(value) <= sys.float_info.max:  # Python does not write all of these out.
            return value
        return value if str(value) == node.value else node.value


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)


def _count_values(node: yaml.Node, counts: dict[int, float]) -> float:
    """Counts the values in a node, infinity if it contains itself, and checks its keys.

    All aliases of a value are one object, so `counts` has the count of each node by its id.
    """
    if id(node) not in counts:
        counts[id(node)] = math.inf
        children = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            _require_distinct_keys(node)
            children = [child for pair in node.value for child in pair]
        counts[id(node)] = 1 + sum(_count_values(child, counts) for child in children)
    return counts[id(node)]


def _require_distinct_keys(mapping: yaml.MappingNode) -> None:
    lines: dict[str, int] = {}
    for key, _ in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value in lines:
            raise ValueError(
                f"duplicate key {preview(key.value, 80)}, first in line {lines[key.value]}"
            )
        lines[key.value] = key.start_mark.line + 1
