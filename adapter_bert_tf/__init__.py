"""Adapter tuning for BERT in TensorFlow/Keras (Houlsby et al., ICML 2019)."""

import importlib

__version__ = "0.1.0"

# Loaded on first use: importing this package must not import TensorFlow.
_HOME = {
    "AdapterConfig": "adapter_bert_tf.adapters.config",
    "PRESETS": "adapter_bert_tf.adapters.config",
    "AdapterBertEncoder": "adapter_bert_tf.adapters.encoder",
    "load_base": "adapter_bert_tf.base",
    "Classifier": "adapter_bert_tf.heads.classifier",
    "TASKS": "adapter_bert_tf.tasks",
    "Tuning": "adapter_bert_tf.training.trained",
    "select_trained": "adapter_bert_tf.training.trained",
    "AdapterModel": "adapter_bert_tf.many_tasks.model",
    "TextEncoder": "adapter_bert_tf.data.tokenization",
    "load_adapter": "adapter_bert_tf.store",
    "save_adapter": "adapter_bert_tf.store",
}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
