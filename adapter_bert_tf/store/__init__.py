"""Adapter directories: a config, the weights and a card."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adapter_bert_tf.store.directory import SavedAdapter as SavedAdapter
    from adapter_bert_tf.store.directory import load_adapter as load_adapter
    from adapter_bert_tf.store.directory import save_adapter as save_adapter

__all__ = ["SavedAdapter", "load_adapter", "save_adapter"]


def __getattr__(name: str) -> Any:
    # Lazy: `python -m adapter_bert_tf.store` sets TensorFlow's log level before importing it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("adapter_bert_tf.store.directory"), name)
