"""File names, variable names and options of AdapterHub's library `adapters`.

`save_adapter(..., use_safetensors=True)` writes `adapter_config.json`, `adapter.safetensors`,
`head_config.json` and `model_head.safetensors`.
"""

from typing import Any

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.variable_specs import POOLER
from adapter_bert_tf.base.config import HUGGING_FACE_ACTIVATIONS
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

CONFIG, WEIGHTS = "adapter_config.json", "adapter.safetensors"
HEAD_CONFIG, HEAD_WEIGHTS = "head_config.json", "model_head.safetensors"
ACTIVATIONS = HUGGING_FACE_ACTIVATIONS | {"tanh": "tanh"}
# The library's names of the places of adapters and of their weights.
MODULE_PATHS = {"attention": "attention.output", "feed_forward": "output"}
WEIGHT_NAMES = {
    "down_kernel": "adapter_down.0.weight",
    "down_bias": "adapter_down.0.bias",
    "up_kernel": "adapter_up.weight",
    "up_bias": "adapter_up.bias",
}
# Supported values of the library's options.
REQUIRED_OPTIONS = {
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
BOOLEAN_OPTIONS = ("mh_adapter", "output_adapter", "is_parallel", "original_ln_before")
REQUIRED_HEAD_OPTIONS = {
    "head_type": "classification",
    "layers": 2,
    "activation_function": "tanh",
    "use_pooler": False,
    "bias": True,
}


def variable_names(adapter: AdapterConfig, num_layers: int, name: str) -> dict[str, str]:
    """Returns a dict from common name to the library's name, for an adapter's variables."""
    hub_name = "bert.encoder.layer.{}.{}.adapters.{}.{}".format
    return {
        f"adapters/layer_{i}/{sublayer}/{weight}": hub_name(
            i, MODULE_PATHS[sublayer], name, hub_weight
        )
        for i in adapter.layer_indices(num_layers)
        for sublayer in adapter.sublayers
        for weight, hub_weight in WEIGHT_NAMES.items()
    }


def head_names(name: str) -> dict[str, str]:
    """Returns a dict from common name to the library's name, for a head's variables."""
    return {
        f"{POOLER}/kernel": f"heads.{name}.1.weight",
        f"{POOLER}/bias": f"heads.{name}.1.bias",
        "head/kernel": f"heads.{name}.4.weight",
        "head/bias": f"heads.{name}.4.bias",
    }


def require(condition: Any, message: str, received: Any, *arguments: str) -> None:
    """Raises `InputError` unless a condition holds; `arguments` as in `InputError`."""
    if not condition:
        raise InputError(f"AdapterHub: {message}. Received: {preview(received)}", *arguments)
