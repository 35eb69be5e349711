"""TensorFlow, imported when it is first used: importing it takes seconds, which errors need not.

Modules that commands load before they know that they compute import `tf` from here. Type
annotations are the one other use of `tf`, so these modules postpone their evaluation
(`from __future__ import annotations`).
"""

import contextlib
import gc
import importlib
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any


@contextlib.contextmanager
def nothing_collected() -> Iterator[None]:
    """Python's garbage collector pauses.

    While TensorFlow is imported, it would walk over half a million objects again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class LazyModule(types.ModuleType):
    """A module that is imported when an attribute of it is first read."""

    def __getattr__(self, name: str) -> Any:
        with nothing_collected():
            module = importlib.import_module(self.__name__)
        value = getattr(module, name)
        if not name.startswith("__"):
            setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import tensorflow as tf
    import tf_keras
else:
    tf = LazyModule("tensorflow")
    tf_keras = LazyModule("tf_keras")

__all__ = ["tf", "tf_keras"]
