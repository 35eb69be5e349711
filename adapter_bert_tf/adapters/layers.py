"""Adapter modules with variables of their own, as tf_keras layers."""

import functools
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec


class Leaf(tf_keras.layers.Layer):
    """The variables below one name, in float32; they are trained or frozen together.

    Args:
      specs: dict from the last part of a variable's name to its `VariableSpec`.
    """

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
    if start == "near_identity":
        return _near_identity
    if isinstance(start, str):
        return start
    kinds = tf_keras.initializers
    return kinds.TruncatedNormal(stddev=start) if cut else kinds.RandomNormal(stddev=start)


def _near_identity(shape: tuple[int, int], dtype: Any = None, **_: Any) -> tf.Tensor:
    return tf.linalg.set_diag(tf.fill(shape, tf.constant(1e-6, dtype)), tf.ones(shape[0], dtype))


def _from_identity(weight: float, kernel: tf.Variable) -> tf.Tensor:
    """`weight * ||I - W||^2`; tf_keras adds it to the loss once, not once per replica."""
    return weight * tf.reduce_sum(tf.square(tf.eye(kernel.shape[0]) - kernel))


class ModuleLayer(tf_keras.layers.Layer):
    """The variables and dropouts of a configuration.

    Args:
      config: `ModuleConfig`.
      sizes: of the encoder.
    """

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
