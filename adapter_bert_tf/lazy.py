"""TensorFlow, imported when it is first used: importing it takes seconds, which errors need not.

Modules that commands load before they know that they compute import `tf` from here. Type
annotations are the one other use of `tf`, so these modules postpone their evaluation
(`from __future__ import annotations`).
"""

import importlib
import types
from typing import TYPE_CHECKING, Any


class LazyModule(types.ModuleType):
    """A module that is imported when an attribute of it is first read."""

    def __getattr__(self, name: str) -> Any:
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
