"""YAML parsing with bounds on what a file may hold."""

import math
import sys
from typing import Any

import yaml

from adapter_bert_tf.sanitize import preview, truncate

MAX_VALUES = 200_000  # With every alias (`*name`) expanded.


def parse_yaml(text: str) -> Any:
    """Parse one YAML document; None for an empty one.

    A number counts as one only if it is written as Python writes it. 01 and 2026_11_26, which YAML
    1.1 reads as 1 and 20261126, stay text: they may be names.

    Raises:
      ValueError: for invalid YAML, too deep nesting, a duplicate key, or aliases that expand to
        more than `MAX_VALUES` values.
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
    """PyYAML's safe loader, which by itself expands any alias and takes the last duplicate key."""

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
    """Count the values in a node, infinity if it contains itself, and check its keys.

    Args:
      node: PyYAML's; all aliases of a value refer to one object.
      counts: dict from the id of a node to its count.
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
