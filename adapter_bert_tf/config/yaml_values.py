"""YAML within bounds: what a text says, or a `ValueError`."""

import collections
import contextlib
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from adapter_bert_tf.sanitize import preview, truncate

if TYPE_CHECKING:
    import yaml

MOST_VALUES = 200_000  # With every alias (`*name`) written out.


def parse_yaml(text: str) -> Any:
    """What a YAML text says; None for an empty one.

    A number is one only if it is written as Python writes it. Others stay text: 01 is no 1 where a
    name is wanted, nor 2026_11_26 a number, as YAML 1.1 has it.

    Raises:
      ValueError: when it is none, nests too deeply, gives a name two values, or names parts of
        itself so often that it stands for more than `MOST_VALUES` values.
    """
    with _said():
        loader = _loader()(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _values(node, {}) > MOST_VALUES:
            raise ValueError(
                f"it stands for more than {MOST_VALUES:,} values. Write them without aliases "
                "(`*name`)"
            )
        _require_distinct(node, set())
        return loader.construct_document(node)


def _loader() -> "type[yaml.SafeLoader]":
    """PyYAML's safe loader, but for numbers."""
    import yaml

    class AsWritten(yaml.SafeLoader):
        """Keeps the text of numbers that are written otherwise than Python writes them."""

        def integer(self, node: yaml.ScalarNode) -> Any:
            return self._written(self.construct_yaml_int(node), node)

        def real(self, node: yaml.ScalarNode) -> Any:
            return self._written(self.construct_yaml_float(node), node)

        def _written(self, value: float, node: yaml.ScalarNode) -> Any:
            if not abs(value) <= sys.float_info.max:  # Of those Python writes none, or not all.
                return value
            return value if str(value) == node.value else node.value

    AsWritten.add_constructor("tag:yaml.org,2002:int", AsWritten.integer)
    AsWritten.add_constructor("tag:yaml.org,2002:float", AsWritten.real)
    return AsWritten


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Turns what PyYAML raises into a `ValueError` that says what is wrong."""
    import yaml

    try:
        yield
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except yaml.YAMLError as error:
        raise ValueError(truncate(" ".join(str(error).split()), 400)) from error
    # What it raises for values that look like a date or a number and are none.
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise ValueError(f"a value is not what its tag says ({error!r})") from error


def _values(node: "yaml.Node", known: dict[int, float]) -> float:
    """How many values a node stands for; infinity if it is a part of itself.

    Args:
      node: of PyYAML; one that several aliases name is one object.
      known: dict from the id of a node to its number.
    """
    if id(node) not in known:
        known[id(node)] = math.inf
        parts = node.value if isinstance(node.value, list) else []
        pairs = (part if isinstance(part, tuple) else (part,) for part in parts)
        known[id(node)] = 1 + sum(_values(child, known) for pair in pairs for child in pair)
    return known[id(node)]


def _require_distinct(node: "yaml.Node", seen: set[int]) -> None:
    """Raises `ValueError` for a name that stands twice in one mapping: PyYAML takes the last."""
    if id(node) in seen or not isinstance(node.value, list):
        return
    seen.add(id(node))
    keys = [part[0] for part in node.value if isinstance(part, tuple)]
    times = collections.Counter(key.value for key in keys if isinstance(key.value, str))
    for key in keys:
        if isinstance(key.value, str) and times[key.value] > 1:
            line = key.start_mark.line + 1
            raise ValueError(f"{preview(key.value, 80)} stands twice, first in line {line}")
    for part in node.value:
        for child in part if isinstance(part, tuple) else (part,):
            _require_distinct(child, seen)
