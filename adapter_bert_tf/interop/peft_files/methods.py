"""The methods in PEFT's files: a row each."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import Base
from adapter_bert_tf.interop.peft_files.ia3 import read_ia3, write_ia3
from adapter_bert_tf.interop.peft_files.lora import read_lora, write_lora

Weights: TypeAlias = dict[str, np.ndarray]
Options: TypeAlias = Mapping[str, Any]


class Method(NamedTuple):
    """A method in PEFT's files.

    Args:
      config: class of our configuration.
      read: function of (options, weights, base), which removes the weights that it reads, to our
        configuration and weights.
      write: function of (configuration, weights, number of layers) to options and weights.
    """

    config: type[ModuleConfig]
    read: Callable[[Options, Weights, Base], tuple[ModuleConfig, Weights]]
    write: Callable[[Any, Mapping[str, np.ndarray], int], tuple[dict[str, Any], Weights]]


METHODS: dict[str, Method] = {  # By the library's `peft_type`.
    "LORA": Method(LoraConfig, read_lora, write_lora),
    "IA3": Method(Ia3Config, read_ia3, write_ia3),
}
