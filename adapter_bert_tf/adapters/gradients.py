"""Gelu, LayerNorm and dropout with explicit gradients, which pass over the data fewer times.

Values and gradients equal those of the plain functions up to the last digits of float32
(`tests/adapters/gradients_test.py`); docs/performance.md has the time saved. Only training uses
them: without gradients the plain functions need fewer operations.

Each is a graph of its own, traced once for all models: TensorFlow keeps an explicit gradient, with
the graph that contains it, until the process ends, so that graph must not be a model's.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, Tensor

Backward = Callable[..., Any]
ANY, VECTOR = tf.TensorSpec(None, tf.float32), tf.TensorSpec([None], tf.float32)
SEQUENCES = tf.TensorSpec([None, None, None], tf.float32)


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
    """`x * Phi(x)` (Hendrycks & Gimpel 2016), float32; the gradient is one product."""
    return tf.ensure_shape(_gelu_erf(x), x.shape)


def gelu(x: tf.Tensor) -> tf.Tensor:
    """The approximation of `gelu_erf` with tanh (Hendrycks & Gimpel 2016, section 2), float32."""
    return tf.ensure_shape(_gelu(x), x.shape)


def layer_norm(x: tf.Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> tf.Tensor:
    """Layer normalization of float32 `[batch, seq, hidden]` over the last axis (Ba et al. 2016)."""
    gamma, beta = tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta)
    return tf.ensure_shape(_layer_norm(x, gamma, beta, tf.constant(epsilon)), x.shape)


def keep(x: tf.Tensor, mask: tf.Tensor, scale: float) -> tf.Tensor:
    """`x * scale` where a boolean mask, which may be broadcast to `x`, is true; elsewhere 0."""
    return tf.ensure_shape(_keep(x.dtype)(x, mask, tf.constant(scale, x.dtype)), x.shape)


def low_rank_product(
    equation: str, x: tf.Tensor, kernel: Tensor, a: Tensor, b: Tensor
) -> tf.Tensor:
    """`tf.einsum(equation, x, kernel + a b)`, float32, with the gradients of two products (LoRA).

    The sum of two kernels is smaller than that of two outputs, but its gradient would be a product
    of the kernel's size. `a` is `[inputs, rank]`, `b` `[rank, outputs]`; heads are side by side.
    """
    kernel, a, b = (tf.convert_to_tensor(value) for value in (kernel, a, b))
    left, right, result = axes_of(equation)
    sizes = dict(zip(left + right, [*x.shape, *kernel.shape], strict=True))
    product = _low_rank_product(equation)(x, kernel, a, b)
    return tf.ensure_shape(product, [sizes[axis] for axis in result])


def axes_of(equation: str) -> tuple[str, str, str]:
    """The axes of both operands and of the result of an `einsum` of two."""
    operands, result = equation.split("->")
    left, right = operands.split(",")
    return left, right, result


# Functions that replace a plain one in training.
IN_TRAINING = {ACTIVATION_FUNCTIONS["gelu"]: gelu, ACTIVATION_FUNCTIONS["gelu_erf"]: gelu_erf}


@tf.function(input_signature=[ANY], autograph=False)
@tf.custom_gradient
def _gelu_erf(x: tf.Tensor) -> tuple[tf.Tensor, Backward]:
    below = 0.5 * (1.0 + tf.math.erf(x * math.sqrt(0.5)))
    density = tf.exp(-0.5 * x * x) * (1.0 / math.sqrt(2.0 * math.pi))
    slope = below + x * density
    return x * below, lambda upstream: upstream * slope


@tf.function(input_signature=[ANY], autograph=False)
@tf.custom_gradient
def _gelu(x: tf.Tensor) -> tuple[tf.Tensor, Backward]:
    scale, cubic = math.sqrt(2.0 / math.pi), 0.044715
    square = x * x
    tangent = tf.tanh(x * (scale + scale * cubic * square))
    below = 0.5 * (1.0 + tangent)
    inner = scale + 3.0 * scale * cubic * square
    slope = below + 0.5 * x * (1.0 - tangent * tangent) * inner
    return x * below, lambda upstream: upstream * slope


@tf.function(
    input_signature=[SEQUENCES, VECTOR, VECTOR, tf.TensorSpec([], tf.float32)], autograph=False
)
@tf.custom_gradient
def _layer_norm(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: tf.Tensor
) -> tuple[tf.Tensor, Backward]:
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean(centred * centred, -1, keepdims=True) + epsilon)
    normal = centred * inverse

    def back(upstream: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
        along, scaled = upstream * normal, upstream * gamma
        mean = tf.reduce_mean(scaled, -1, keepdims=True)
        slope = tf.reduce_mean(scaled * normal, -1, keepdims=True)
        into = inverse * (scaled - mean - normal * slope)
        return into, tf.reduce_sum(along, [0, 1]), tf.reduce_sum(upstream, [0, 1]), None

    return normal * gamma + beta, back


@functools.cache
def _keep(dtype: tf.DType) -> Callable[..., tf.Tensor]:
    specs = [tf.TensorSpec(None, dtype), tf.TensorSpec(None, tf.bool), tf.TensorSpec([], dtype)]

    @tf.function(input_signature=specs, autograph=False)
    @tf.custom_gradient
    def kept(x: tf.Tensor, mask: tf.Tensor, scale: tf.Tensor) -> tuple[tf.Tensor, Backward]:
        def scaled(values: tf.Tensor) -> tf.Tensor:
            return tf.where(mask, values * scale, tf.zeros([], dtype))

        return scaled(x), lambda upstream: (scaled(upstream), None, None)

    return kept


@functools.cache
def _low_rank_product(equation: str) -> Callable[..., tf.Tensor]:
    left, right, result = axes_of(equation)
    rows = "".join(axis for axis in left if axis not in right)
    inner = "".join(axis for axis in left if axis in right)
    specs = [tf.TensorSpec([None] * rank, tf.float32) for rank in (len(left), len(right), 2, 2)]

    @tf.function(input_signature=specs, autograph=False)
    @tf.custom_gradient
    def product(
        x: tf.Tensor, kernel: tf.Tensor, a: tf.Tensor, b: tf.Tensor
    ) -> tuple[tf.Tensor, Backward]:
        changed = kernel + tf.reshape(tf.matmul(a, b), tf.shape(kernel))

        def back(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs, inputs = _matrix(upstream, result, rows), _matrix(x, left, rows)
            narrow = tf.matmul(outputs, b, transpose_b=True)
            # With `changed`, this would be one product, but keep a copy of every kernel until here.
            to_inputs = tf.matmul(
                outputs, tf.reshape(kernel, [tf.shape(a)[0], -1]), transpose_b=True
            )
            to_inputs += tf.matmul(narrow, a, transpose_b=True)
            return (
                _tensor(to_inputs, x, left, rows + inner),
                tf.einsum(f"{left},{result}->{right}", x, upstream),  # Pruned for frozen kernels.
                tf.matmul(inputs, narrow, transpose_a=True),
                tf.matmul(tf.matmul(inputs, a), outputs, transpose_a=True),
            )

        return tf.einsum(equation, x, changed), back

    return product


def _matrix(x: tf.Tensor, axes: str, rows: str) -> tf.Tensor:
    """`x` with the named rows first, and the other axes joined."""
    order = [
        *(axes.index(axis) for axis in rows),
        *(i for i, a in enumerate(axes) if a not in rows),
    ]
    if order != sorted(order):
        x = tf.transpose(x, order)
    shape = tf.shape(x)
    return tf.reshape(x, [tf.reduce_prod(shape[: len(rows)]), tf.reduce_prod(shape[len(rows) :])])


def _tensor(matrix: tf.Tensor, like: tf.Tensor, axes: str, order: str) -> tf.Tensor:
    """Undoes `_matrix`."""
    sizes = tf.shape(like)
    x = tf.reshape(matrix, [sizes[axes.index(axis)] for axis in order])
    return x if order == axes else tf.transpose(x, [order.index(axis) for axis in axes])
