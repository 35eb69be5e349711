"""The base's LayerNorm, activation and dense layers, faster in training than those of tf_keras.

As in the encoder, calls do not use `super()`.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters import gradients
from adapter_bert_tf.adapters.modules import DenseChange

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

    def call(self, inputs: tf.Tensor, by_head: bool = False) -> tf.Tensor:
        dtype = self.product_dtype or self.compute_dtype
        x, kernel = (tf.cast(value, dtype) for value in (inputs, self.kernel))
        product = tf.cast(tf.einsum(self._equation(by_head), x, kernel), self.compute_dtype)
        return self._add_bias(product, by_head)

    def _equation(self, by_head: bool) -> str:
        return str(BY_HEAD[self.equation] if by_head else self.equation)

    def _add_bias(self, product: tf.Tensor, by_head: bool) -> tf.Tensor:
        if self.bias.shape.rank == 1:
            return tf.nn.bias_add(product, self.bias)  # The gradient of a sum has more operations.
        return product + (self.bias[:, tf.newaxis] if by_head else self.bias)

    def changed(
        self,
        inputs: tf.Tensor,
        change: DenseChange,
        by_head: bool = False,
        training: bool | None = None,
    ) -> tf.Tensor:
        """The output with a change. As an argument of `call`, Keras could not save the model."""
        has_product = change.a is not None
        if has_product and training is True and not change.dropout and self._can_add_kernels():
            product = gradients.low_rank_product(
                self._equation(by_head), inputs, self.kernel, change.a, change.b
            )
            output = self._add_bias(product, by_head)
        elif has_product:
            output = self(inputs, by_head=by_head) + self._low_rank(inputs, change, by_head)
        else:
            output = self(inputs, by_head=by_head)
        if change.scale is None:
            return output
        scale = tf.cast(tf.reshape(change.scale, self.bias.shape), output.dtype)
        return output * (scale[:, tf.newaxis] if by_head and scale.shape.rank == 2 else scale)

    def _can_add_kernels(self) -> bool:
        """Whether the sum of a kernel and a much smaller one keeps the smaller one.

        TPUs round the factors of float32 products, and so do GPUs with TF32.
        """
        is_float32 = self.compute_dtype == "float32" and self.product_dtype is None
        devices = tf.config.list_logical_devices()
        return is_float32 and all(device.device_type == "CPU" for device in devices)

    def _low_rank(self, inputs: tf.Tensor, change: DenseChange, by_head: bool) -> tf.Tensor:
        x = tf.cast(inputs, self.compute_dtype)
        x = change.dropout(x) if change.dropout else x
        left, right, result = gradients.axes_of(self._equation(by_head))
        inner = "".join(axis for axis in right if axis in left)
        outer = right.replace(inner, "")
        rows = "".join(axis for axis in left if axis not in inner)
        shape = self.kernel.shape
        a = tf.reshape(tf.cast(change.a, x.dtype), [*shape[: len(inner)], -1])
        b = tf.reshape(tf.cast(change.b, x.dtype), [-1, *shape[len(inner) :]])
        narrow = tf.einsum(f"{left},{inner}r->{rows}r", x, a)
        return tf.einsum(f"{rows}r,r{outer}->{result}", narrow, b)

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
