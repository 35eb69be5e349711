"""Adapter tuning for BERT in TensorFlow/Keras (Houlsby et al., ICML 2019)."""

import importlib
import os
from typing import TYPE_CHECKING, Any

from adapter_bert_tf.lazy import nothing_collected

if TYPE_CHECKING:
    from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig as AdapterConfig
    from adapter_bert_tf.adapters.encoder import AdapterBertEncoder as AdapterBertEncoder
    from adapter_bert_tf.adapters.presets import PRESETS as PRESETS
    from adapter_bert_tf.base import load_base as load_base
    from adapter_bert_tf.data.conversion import examples as examples
    from adapter_bert_tf.data.tokenization import TextEncoder as TextEncoder
    from adapter_bert_tf.errors import InputError as InputError
    from adapter_bert_tf.heads.classifier import Classifier as Classifier
    from adapter_bert_tf.jobs.train import train as train
    from adapter_bert_tf.multi_adapter.model import AdapterModel as AdapterModel
    from adapter_bert_tf.predict.predictor import Predictor as Predictor
    from adapter_bert_tf.store import load_adapter as load_adapter
    from adapter_bert_tf.store import save_adapter as save_adapter
    from adapter_bert_tf.tasks import TASKS as TASKS
    from adapter_bert_tf.training.tuning import Tuning as Tuning
    from adapter_bert_tf.training.tuning import select_trained as select_trained

# TensorFlow 2.20 reports absent GPUs and its own pruning of graphs as errors, on standard error.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

__version__ = "0.1.0"

# Loaded on first use: importing this package must not import TensorFlow.
_HOME = {
    "AdapterConfig": "adapter_bert_tf.adapters.bottleneck_config",
    "PRESETS": "adapter_bert_tf.adapters.presets",
    "AdapterBertEncoder": "adapter_bert_tf.adapters.encoder",
    "load_base": "adapter_bert_tf.base",
    "Classifier": "adapter_bert_tf.heads.classifier",
    "TASKS": "adapter_bert_tf.tasks",
    "Tuning": "adapter_bert_tf.training.tuning",
    "select_trained": "adapter_bert_tf.training.tuning",
    "AdapterModel": "adapter_bert_tf.multi_adapter.model",
    "Predictor": "adapter_bert_tf.predict.predictor",
    "train": "adapter_bert_tf.jobs.train",
    "examples": "adapter_bert_tf.data.conversion",
    "InputError": "adapter_bert_tf.errors",
    "TextEncoder": "adapter_bert_tf.data.tokenization",
    "load_adapter": "adapter_bert_tf.store",
    "save_adapter": "adapter_bert_tf.store",
}
_ROOMS = ("beam",)
__all__ = sorted([*_HOME, *_ROOMS])


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with nothing_collected():
        return getattr(importlib.import_module(_HOME[name]), name)
