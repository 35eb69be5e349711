"""The encoder of a task: a base, shared or its own, with an adapter module."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.base_layers import (
    FLOAT32_INPUTS,
    dense_variables,
    new_norm,
    norm_variables,
)
from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.modules import AdapterModule, ReplacingModule
from adapter_bert_tf.adapters.ops import Range, on_vectors
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.variable_specs import (
    POOLER,
    Sizes,
    VariableSpec,
    check_specs,
    norm_names,
)


class Leaf(tf_keras.layers.Layer):
    """The float32 variables below one name; `specs` are by the last part of their names."""

    def __init__(self, specs: Mapping[str, VariableSpec], **kwargs: Any) -> None:
        super().__init__(dtype=tf.float32, autocast=False, **kwargs)
        self.values = {
            name: self.add_weight(
                name,
                spec.shape,
                initializer=_initializer(spec.start, spec.cut),
                regularizer=functools.partial(_from_identity, spec.to_identity)
                if spec.to_identity
                else None,
            )
            for name, spec in specs.items()
        }


def _initializer(start: str | float, cut: bool) -> Any:
    kinds = tf_keras.initializers
    if start == "near_identity":
        return _near_identity
    if start == "fan_in_uniform":
        return kinds.VarianceScaling(1 / 3, "fan_in", "uniform")
    if isinstance(start, str):
        return start
    return kinds.TruncatedNormal(stddev=start) if cut else kinds.RandomNormal(stddev=start)


def _near_identity(shape: tuple[int, int], dtype: Any = None, **_: Any) -> tf.Tensor:
    return tf.linalg.set_diag(tf.fill(shape, tf.constant(1e-6, dtype)), tf.ones(shape[0], dtype))


def _from_identity(weight: float, kernel: tf.Variable) -> tf.Tensor:
    """`weight * ||I - W||^2`; tf_keras adds it to the loss once, not once per replica."""
    return weight * tf.reduce_sum(tf.square(tf.eye(kernel.shape[0]) - kernel))


class ModuleLayer(tf_keras.layers.Layer):
    """The variables and dropouts of a `ModuleConfig`, for an encoder of these sizes."""

    def __init__(self, config: ModuleConfig, sizes: Sizes, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.dropouts = config.new_dropouts(sizes)
        leaves: dict[str, dict[str, VariableSpec]] = {}
        for name, spec in config.specs(sizes).items():
            prefix, _, last = name.rpartition("/")
            leaves.setdefault(prefix, {})[last] = spec
        self.leaf_names = list(leaves)  # tf_keras sorts the dict.
        self.leaves = {prefix: _leaf(prefix, specs) for prefix, specs in leaves.items()}

    def module(self) -> AdapterModule:
        """The `AdapterModule` that computes with the variables."""
        return self.config.module(self.named_variables(), self.dropouts)

    def named_variables(self) -> dict[str, tf.Variable]:
        """Dict from common name to variable, in the order of the configuration's `specs`."""
        return {
            f"{prefix}/{name}": variable
            for prefix in self.leaf_names
            for name, variable in self.leaves[prefix].values.items()
        }


def _leaf(prefix: str, specs: Mapping[str, VariableSpec]) -> Leaf:
    with tf.name_scope(prefix):
        return Leaf(specs, name=prefix)


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class TaskEncoder(tf_keras.layers.Layer):
    """An encoder with an adapter module, and LayerNorms and a pooler of its own.

    Training these does not change a shared encoder.

    Args:
      encoder: `AdapterBertEncoder`.
      adapter: `ModuleConfig`, one as a dict, or None.
      own_norms, own_pooler: whether it has its own; they start as the encoder's.
      module_layer: the `ModuleLayer` of `adapter`; None: a new one.
      frozen_layers: as in `AdapterBertEncoder`; None: as many as the encoder has.
    """

    def __init__(
        self,
        encoder: AdapterBertEncoder,
        adapter: ModuleConfig | Mapping[str, Any] | None = None,
        own_norms: bool = True,
        own_pooler: bool = False,
        module_layer: ModuleLayer | None = None,
        frozen_layers: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**FLOAT32_INPUTS, **kwargs)
        self.encoder = encoder
        self.frozen_layers = frozen_layers
        self.config = encoder.config
        self.inputs = encoder.inputs
        config = ModuleConfig.from_dict(adapter) if isinstance(adapter, Mapping) else adapter
        if config:
            check_specs(config.specs(self.config), self.config)
        if module_layer is None and config:
            module_layer = _new_module_layer(config, self.config)
        self.module_layer = module_layer
        shared = encoder.base_variables()
        names = norm_names(self.config["num_layers"]) if own_norms else []
        self.norms = {
            name.replace("/", "_"): _norm_like(shared, name, self.config) for name in names
        }
        self.own_pooler = _dense_like(shared, POOLER) if own_pooler else None
        self.built = True

    def call(
        self, inputs: Mapping[str, tf.Tensor], output_range: Range = None
    ) -> dict[str, tf.Tensor]:
        """Encodes a batch as `AdapterBertEncoder.call` does, with its own module."""
        return self.encoder(
            inputs, output_range, module=self.module(), frozen_layers=self.frozen_layers
        )

    def frozen_output(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The frozen layers with its own LayerNorms, float32 `[batch, seq, hidden]`."""
        return self.encoder.frozen_output(inputs, self.module(), self.frozen_layers)

    def module(self) -> AdapterModule:
        """The `AdapterModule` of a call, with its LayerNorms and pooler."""
        inner = self.module_layer.module() if self.module_layer else AdapterModule()
        norms = {name: _always(layer) for name, layer in self._own_norms().items()}
        pooler = self.own_pooler and functools.partial(on_vectors, self.own_pooler)
        return ReplacingModule(inner, norms, pooler)

    def _own_norms(self) -> dict[str, tf_keras.layers.LayerNormalization]:
        names = norm_names(self.config["num_layers"]) if self.norms else []
        return {name: self.norms[name.replace("/", "_")] for name in names}

    def named_variables(self) -> dict[str, tf.Variable]:
        """The base's variables, its own in place of the shared ones, and those of the module."""
        named = self.encoder.base_variables()
        for name, layer in self._own_norms().items():
            named |= norm_variables(name, layer)
        if self.own_pooler:
            named |= dense_variables(POOLER, self.own_pooler)
        return named | (self.module_layer.named_variables() if self.module_layer else {})

    def specs(self) -> dict[str, VariableSpec]:
        """Dict from the names of `named_variables` to their `VariableSpec`s."""
        layer = self.module_layer
        return self.encoder.specs() | (layer.config.specs(self.config) if layer else {})

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "encoder": tf_keras.utils.serialize_keras_object(self.encoder),
            "adapter": self.module_layer and self.module_layer.config.to_dict(),
            "own_norms": bool(self.norms),
            "own_pooler": self.own_pooler is not None,
            "frozen_layers": self.frozen_layers,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "TaskEncoder":
        encoder = tf_keras.utils.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder, **config)


def new_encoder(
    sizes: Sizes, adapter: ModuleConfig | None = None
) -> AdapterBertEncoder | TaskEncoder:
    """An encoder with random weights of its own, and with an adapter module if there is a config.

    The module's weights are drawn first, so that they do not depend on how the base is made.
    `sizes` are arguments of `AdapterBertEncoder`.
    """
    if adapter is None:
        return AdapterBertEncoder(**sizes)
    module_layer = _new_module_layer(adapter, sizes)
    encoder = AdapterBertEncoder(**sizes)
    return TaskEncoder(encoder, adapter, own_norms=False, module_layer=module_layer)


def _new_module_layer(config: ModuleConfig, sizes: Sizes) -> ModuleLayer:
    # The name is part of the names of operations, and those decide the order of sums of gradients.
    return ModuleLayer(config, sizes, name="parts")


def _always(layer: Any) -> Callable[[Any], Any]:
    return lambda own: layer


def _norm_like(shared: Mapping[str, tf.Variable], name: str, sizes: Sizes) -> Any:
    gamma, beta = shared[f"{name}/gamma"], shared[f"{name}/beta"]
    layer = new_norm("layer_norm", sizes["norm_epsilon"])
    with tf.name_scope(layer.name):  # By its name it is known not to decay.
        layer.build((None, None, sizes["hidden_size"]))
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    return layer


def _dense_like(shared: Mapping[str, tf.Variable], name: str) -> Any:
    kernel, bias = shared[f"{name}/kernel"], shared[f"{name}/bias"]
    layer = tf_keras.layers.Dense(bias.shape[0], activation="tanh", name="pooler_transform")
    layer.build((None, kernel.shape[0]))
    layer.kernel.assign(kernel)
    layer.bias.assign(bias)
    return layer
