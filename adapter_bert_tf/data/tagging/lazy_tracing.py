"""Functions that run eagerly at first, and as a graph once tracing them pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapter_bert_tf.adapters.ops import compiled
from adapter_bert_tf.data.batches import UNTRACED


class LazilyTraced:
    """A function of one tensor, which is traced after `UNTRACED` calls, as tracing takes as long.

    Args:
      function: to call.
      spec: of its argument.
    """

    def __init__(self, function: Callable[[Any], Any], spec: Any) -> None:
        self._function, self._spec = function, spec
        self._calls = 0
        self._traced: Callable[[Any], Any] | None = None

    def __call__(self, value: Any) -> Any:
        self._calls += 1
        if self._traced is None and self._calls > UNTRACED:
            self._traced = compiled(self._function, input_signature=[self._spec])
        return (self._traced or self._function)(value)
