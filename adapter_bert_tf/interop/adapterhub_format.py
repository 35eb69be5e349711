"""The format of AdapterHub's library `adapters`: its files, names and options.

A folder of `save_adapter(..., use_safetensors=True)`: `adapter_config.json`, `adapter.safetensors`,
`head_config.json`, `model_head.safetensors`.
"""

from typing import Any

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.variable_specs import POOLER
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

CONFIG, WEIGHTS = "adapter_config.json", "adapter.safetensors"
HEAD_CONFIG, HEAD_WEIGHTS = "head_config.json", "model_head.safetensors"
ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "swish": "swish",
    "silu": "swish",
    "tanh": "tanh",
}
# Where the library inserts adapters, and what it calls the parts.
PLACES = {"attention": "attention.output", "feed_forward": "output"}
PARTS = {
    "down_kernel": "adapter_down.0.weight",
    "down_bias": "adapter_down.0.bias",
    "up_kernel": "adapter_up.weight",
    "up_bias": "adapter_up.bias",
}
# Of the library's many options, the values of those that we compute.
FIXED = {
    "ln_before": False,
    "ln_after": False,
    "phm_layer": False,
    "use_gating": False,
    "inv_adapter": None,
    "adapter_residual_before_ln": False,
    "original_ln_after": True,
    "residual_before_ln": True,
    "stochastic_depth": 0.0,
}
SWITCHES = ("mh_adapter", "output_adapter", "is_parallel", "original_ln_before")
HEAD_FIXED = {
    "head_type": "classification",
    "layers": 2,
    "activation_function": "tanh",
    "use_pooler": False,
    "bias": True,
}


def variable_names(adapter: AdapterConfig, num_layers: int, name: str) -> dict[str, str]:
    """Dict from our names of an adapter's variables to the library's."""
    theirs_at = "bert.encoder.layer.{}.{}.adapters.{}.{}".format
    return {
        f"adapters/layer_{i}/{sublayer}/{part}": theirs_at(i, PLACES[sublayer], name, theirs)
        for i in adapter.layer_indices(num_layers)
        for sublayer in adapter.sublayers
        for part, theirs in PARTS.items()
    }


def head_names(name: str) -> dict[str, str]:
    """Dict from our names of a head's variables to the library's."""
    return {
        f"{POOLER}/kernel": f"heads.{name}.1.weight",
        f"{POOLER}/bias": f"heads.{name}.1.bias",
        "head/kernel": f"heads.{name}.4.weight",
        "head/bias": f"heads.{name}.4.bias",
    }


def require(condition: Any, message: str, received: Any, *arguments: str) -> None:
    """Raises `InputError` unless a condition holds; see `InputError` for the arguments."""
    if not condition:
        raise InputError(f"AdapterHub: {message}. Received: {preview(received)}", *arguments)
