"""Layers of the base as tf_keras has them, but faster in training.

As in the encoder, what a call runs has no `super()`.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters import gradients


class Norm(tf_keras.layers.LayerNormalization):
    """tf_keras' LayerNorm over the last axis, in training with a gradient of fewer passes."""

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        if training is not True:
            return tf_keras.layers.LayerNormalization.call(self, inputs)
        x = tf.cast(inputs, self.compute_dtype)
        return gradients.layer_norm(x, self.gamma, self.beta, self.epsilon)


def new_norm(name: str, epsilon: float) -> Norm:
    """A LayerNorm of the encoder: float32, whatever the compute dtype."""
    return Norm(name=name, epsilon=epsilon, dtype=tf.float32)


class Activation(tf_keras.layers.Activation):
    """tf_keras' nonlinearity, in training with a gradient of fewer passes where there is one.

    Those are of float32, which it has unless the policy is of float16.
    """

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        function = self.activation
        if training is True and inputs.dtype == tf.float32:
            function = gradients.IN_TRAINING.get(function, function)
        return function(inputs)


class Dense(tf_keras.layers.EinsumDense):
    """A dense layer of the base whose product is computed in fewer bits than all else.

    Args:
      product_dtype: of the product, forward and back.
    """

    def __init__(self, *args: Any, product_dtype: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.product_dtype = product_dtype

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        x, kernel = (tf.cast(value, self.product_dtype) for value in (inputs, self.kernel))
        product = tf.cast(tf.einsum(self.equation, x, kernel), self.compute_dtype)
        return self.activation(product + self.bias)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"product_dtype": self.product_dtype}


def put_dense(holder: Any, names: Sequence[str], product_dtype: str | None) -> None:
    """Puts a `Dense` in the place of each of a layer's dense layers, if a dtype is asked for."""
    for name in names if product_dtype else ():
        config = getattr(holder, name).get_config() | {"product_dtype": product_dtype}
        setattr(holder, name, Dense.from_config(config))
