"""The base's LayerNorm, activation and dense layers, faster in training than those of tf_keras.

As in the encoder, calls do not use `super()`.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters import gradients
from adapter_bert_tf.adapters.modules import UNCHANGED, DenseChange

# Keras casts the inputs of a layer to its compute dtype; skip connections stay float32.
FLOAT32_INPUTS: dict[str, Any] = {"autocast": False}


class Norm(tf_keras.layers.LayerNormalization):
    """tf_keras' LayerNorm over the last axis, with a faster gradient in training."""

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        if training is not True:
            return tf_keras.layers.LayerNormalization.call(self, inputs)
        x = tf.cast(inputs, self.compute_dtype)
        return gradients.layer_norm(x, self.gamma, self.beta, self.epsilon)


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class UnsetWeights(tf_keras.initializers.TruncatedNormal):
    """Zeros for weights that are assigned later, because drawing them takes seconds.

    It takes a seed as the random initializer does, so that weights drawn after it stay the same.
    """

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> tf.Tensor:
        self._random_generator.make_seed_for_stateless_op()
        return tf.zeros(shape, dtype or tf.float32)


def new_norm(name: str, epsilon: float) -> Norm:
    """A LayerNorm of the encoder, float32 in every compute dtype."""
    return Norm(name=name, epsilon=epsilon, dtype=tf.float32)


class Activation(tf_keras.layers.Activation):
    """tf_keras' activation layer, with a faster gradient in float32 training where there is one."""

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        function = self.activation
        if training is True and inputs.dtype == tf.float32:
            function = gradients.IN_TRAINING.get(function, function)
        return function(inputs)


# Products of attention's dense layers, and the same with heads before positions.
BY_HEAD = {"abc,cde->abde": "abc,cde->adbe", "abcd,cde->abe": "acbd,cde->abe"}


class Dense(tf_keras.layers.EinsumDense):
    """A dense layer of the base; its product may have another dtype, forward and backward.

    With `by_head`, values that are split by head are `[batch, heads, positions, size]`.
    """

    def __init__(self, *args: Any, product_dtype: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.product_dtype = product_dtype

    def call(
        self,
        inputs: tf.Tensor,
        by_head: bool = False,
        change: DenseChange = UNCHANGED,
        training: bool | None = None,
    ) -> tf.Tensor:
        # The gradient of a changed kernel would be as large as the kernel.
        of_output = change if training is True else UNCHANGED
        kernel, bias = self.changed_weights(UNCHANGED if training is True else change)
        dtype = self.product_dtype or self.compute_dtype
        x, kernel = (tf.cast(value, dtype) for value in (inputs, kernel))
        equation = BY_HEAD[self.equation] if by_head else self.equation
        if of_output.a is None:
            product = tf.cast(tf.einsum(equation, x, kernel), self.compute_dtype)
        else:
            product = gradients.low_rank_product(equation, x, kernel, of_output.a, of_output.b)
        beside = by_head and bias.shape.rank == 2  # Of heads in front of positions.
        if bias.shape.rank == 1:
            output = tf.nn.bias_add(product, bias)  # The gradient of a sum has more operations.
        else:
            output = product + (bias[:, tf.newaxis] if beside else bias)
        if of_output.scale is None:
            return output
        scale = tf.reshape(of_output.scale, bias.shape)
        return output * (scale[:, tf.newaxis] if beside else scale)

    def changed_weights(self, change: DenseChange) -> tuple[tf.Tensor, tf.Tensor]:
        """The kernel and the bias with a change."""
        kernel, bias = self.kernel, self.bias
        if change.a is not None:
            kernel = kernel + tf.reshape(tf.matmul(change.a, change.b), kernel.shape)
        if change.scale is not None:
            scale = tf.reshape(change.scale, bias.shape)
            kernel, bias = kernel * scale, bias * scale
        return kernel, bias

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"product_dtype": self.product_dtype}


def replace_dense(layer: Any, names: Sequence[str], product_dtype: str | None) -> None:
    """Replaces the named dense layers of a layer by `Dense`; they have no activation."""
    for name in names:
        config = getattr(layer, name).get_config() | {"product_dtype": product_dtype}
        setattr(layer, name, Dense.from_config(config))


def create_variables(layer: Any, shape: Sequence[int | None]) -> None:
    """Creates the variables of a layer for inputs of a shape, under the names of a call."""
    if layer.built:
        return
    with tf.name_scope(layer.name):
        layer.build(tf.TensorShape(shape))


def dense_variables(prefix: str, layer: Any) -> dict[str, tf.Variable]:
    """Dict from `prefix/kernel` and `prefix/bias` to the variables of a dense layer."""
    return {f"{prefix}/kernel": layer.kernel, f"{prefix}/bias": layer.bias}


def norm_variables(prefix: str, layer: Any) -> dict[str, tf.Variable]:
    """Dict from `prefix/gamma` and `prefix/beta` to the variables of a LayerNorm."""
    return {f"{prefix}/gamma": layer.gamma, f"{prefix}/beta": layer.beta}
