"""Dense layers and LayerNorm on given weights, one set for all rows or one for each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, Union

from adapter_bert_tf.lazy import tf

Tensor: TypeAlias = Union["tf.Tensor", "tf.Variable"]
Range: TypeAlias = Union[int, "tf.Tensor", None]  # Positions that a block computes; see `chosen`.


def _gelu(x: tf.Tensor) -> tf.Tensor:
    """The approximation with tanh, whose cube of x overflows float16 from 41 on."""
    wide = tf.cast(x, tf.float32) if x.dtype == tf.float16 else x
    return tf.cast(tf.nn.gelu(wide, approximate=True), x.dtype)


ACTIVATION_FUNCTIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "gelu": _gelu,
    "gelu_erf": lambda x: tf.nn.gelu(x, approximate=False),
    "relu": lambda x: tf.nn.relu(x),
    "swish": lambda x: tf.nn.silu(x),
    "tanh": lambda x: tf.math.tanh(x),
    "linear": lambda x: x,
}
# What the leading axis of stacked weights stands for.
ROWS, MEMBERS = "rows", "members"


def compiled(run: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Returns the `tf.function` of `run`, without AutoGraph; `options` are those of `tf.function`.

    TensorFlow counts the traces of a piece of code, also those of other models, and warns of them.
    A partial object is counted for itself.
    """
    return tf.function(functools.partial(run), autograph=False, **options)


def chosen(x: tf.Tensor, output_range: Range) -> tf.Tensor:
    """Some positions of `[batch, seq, hidden]`, which the next layers and heads use.

    `output_range` is how many of the leading ones, or the numbers of positions for each row, int32
    `[batch, places]`; None for all.
    """
    if output_range is None:
        return x  # A slice of everything would have a gradient that copies it.
    if getattr(output_range, "shape", ()) == ():
        return x[:, :output_range]
    return tf.gather(x, output_range, batch_dims=1)


def dense(x: tf.Tensor, kernel: Tensor, bias: Tensor, stacked: str | None = None) -> tf.Tensor:
    """Applies a dense layer to vectors or sequences, with one kernel or several.

    Args:
      x: float `[batch, size]` or `[batch, seq, size]`; of members also
        `[batch, seq, members, size]`.
      kernel, bias: `[size, width]` and `[width]`; stacked with a leading `[batch or members]`.
      stacked: None; `ROWS`: each row of `x` has its own kernel; `MEMBERS`: every member's kernel
        is applied, in one product, to `[batch, seq, members, width]`.
    """
    if stacked is None and x.shape.rank == 2:
        return on_vectors(lambda row: dense(row, kernel, bias), x)
    if stacked is None:
        return tf.nn.bias_add(product(x, kernel), bias)
    if stacked == MEMBERS:
        equation = "bsi,niw->bsnw" if x.shape.rank == 3 else "bsni,niw->bsnw"
        return tf.einsum(equation, x, kernel) + bias
    if x.shape.rank == 3:
        return products(x, kernel) + bias[:, tf.newaxis]
    return tf.squeeze(products(x[:, tf.newaxis], kernel), 1) + bias


def product(x: tf.Tensor, kernel: Tensor, stacked: str | None = None) -> tf.Tensor:
    """`[batch, positions, width]`, of `[batch, positions, size]` and a kernel as in `dense`.

    Each row of `x` has its own kernel if `stacked` is `ROWS`. `tf.tensordot` computes the same with
    seven times as many operations.
    """
    kernel = tf.cast(kernel, x.dtype)
    if stacked == ROWS:
        return products(x, kernel)
    axes = "bsmn"[: x.shape.rank - 1]
    return tf.einsum(f"{axes}i,iw->{axes}w", x, kernel)


def products(x: tf.Tensor, y: tf.Tensor, transpose_y: bool = False) -> tf.Tensor:
    """The products of matrices in `x` and `y`, whose leading dimensions are equal.

    The gradient of `tf.matmul` computes what might have been broadcast where sizes are unknown.
    """
    return tf.raw_ops.BatchMatMul(x=x, y=y, adj_y=transpose_y)


def on_vectors(layer: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    """Applies a dense layer to vectors `[batch, size]` as to sequences of length one.

    TensorFlow fuses a product of matrices and its bias to one oneDNN kernel, which is suspected of
    memory errors (docs/design.md, "A process that dies"). A sequence has a reshape between the two.
    """
    return layer(x[:, tf.newaxis])[:, 0]


def layer_norm(
    x: tf.Tensor,
    gamma: Tensor,
    beta: Tensor,
    epsilon: float = 1e-12,
    stacked: str | None = None,
) -> tf.Tensor:
    """Layer normalization of float32 `x` over the last axis, as in tf_keras."""
    if stacked == ROWS:
        gamma, beta = gamma[:, tf.newaxis], beta[:, tf.newaxis]
    if stacked == MEMBERS and x.shape.rank == 3:
        x = x[:, :, tf.newaxis]
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)
