"""Multi-head attention of the base.

The private attributes are those of tf_keras 2.20; `tests/adapters/encoder_test.py` fails if another
version names them differently. As in the encoder, calls do not use `super()`.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.base_layers import create_variables, replace_dense
from adapter_bert_tf.adapters.modules import DenseChange
from adapter_bert_tf.adapters.ops import products

Adapt = Callable[[str, tf.Tensor, tf.Tensor], tf.Tensor]
NO_CHANGES: Mapping[str, DenseChange] = {}


class Attention(tf_keras.layers.MultiHeadAttention):
    """tf_keras' multi-head attention with a float32 softmax; `product_dtype` is as in `Dense`."""

    def __init__(self, *args: Any, product_dtype: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.product_dtype = product_dtype

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"product_dtype": self.product_dtype}

    def _build_from_signature(self, query: Any, value: Any, key: Any = None) -> None:
        tf_keras.layers.MultiHeadAttention._build_from_signature(self, query, value, key)
        names = ("_query_dense", "_key_dense", "_value_dense", "_output_dense")
        replace_dense(self, names, self.product_dtype)
        # Its input has the heads elsewhere in calls.
        create_variables(self._output_dense, [None, None, self._num_heads, self._key_dim])

    def create_variables(self, shape: Sequence[int | None]) -> None:
        """Creates its variables for inputs of a shape."""
        with tf.name_scope(self.name):
            self._build_from_signature(query=shape, value=shape)
            for dense in (self._query_dense, self._key_dense, self._value_dense):
                create_variables(dense, shape)
        self.built = True

    def call(self, x: tf.Tensor, block_input: tf.Tensor, attention_mask: tf.Tensor) -> tf.Tensor:
        """Attention of `x` to `block_input`; shapes are as in `call_adapted`."""
        if not self._built_from_signature:
            self._build_from_signature(query=x, value=block_input)
        return self.call_changed(x, block_input, attention_mask, NO_CHANGES)

    def call_changed(
        self,
        x: tf.Tensor,
        block_input: tf.Tensor,
        attention_mask: tf.Tensor,
        changes: Mapping[str, DenseChange],
        training: bool | None = None,
    ) -> tf.Tensor:
        """`call` with changes of projections, by name."""
        project = functools.partial(self._project, changes, by_head=True, training=training)
        query = project("query", x)
        key, value = (project(name, block_input) for name in ("key", "value"))
        context = self._context(query, key, value, attention_mask)
        return project("attention_output", context)

    def _project(
        self,
        changes: Mapping[str, DenseChange],
        name: str,
        x: tf.Tensor,
        by_head: bool = False,
        training: bool | None = None,
    ) -> tf.Tensor:
        dense = self._projections[name]
        if name in changes:
            return dense.changed(x, changes[name], by_head=by_head, training=training)
        return dense(x, by_head=by_head)

    @property
    def _projections(self) -> dict[str, Any]:
        return {
            "query": self._query_dense,
            "key": self._key_dense,
            "value": self._value_dense,
            "attention_output": self._output_dense,
        }

    def _context(
        self, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, attention_mask: tf.Tensor
    ) -> tf.Tensor:
        """The means of the values by attention; all are `[batch, heads, positions, size]`."""
        query = tf.multiply(query, 1.0 / math.sqrt(self._key_dim))
        # `tf.einsum` computes the same, and copies all operands in its gradients.
        scores = products(query, key, transpose_y=True)
        return products(self._weights(scores, attention_mask, value.dtype), value)

    def _weights(self, scores: tf.Tensor, attention_mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        """The attention weights after dropout, `[batch, heads, queries, seq]`."""
        scores = tf.cast(scores, tf.float32)
        scores += (1.0 - tf.cast(attention_mask[:, tf.newaxis], tf.float32)) * -1e9
        return self._dropout_layer(tf.cast(tf.nn.softmax(scores), dtype))

    def call_adapted(
        self, x: tf.Tensor, block_input: tf.Tensor, attention_mask: tf.Tensor, adapt: Adapt
    ) -> tf.Tensor:
        """Attention with changed projections; also exact for one query in each row.

        `x` is `[batch, queries, hidden]`, `block_input` `[batch, seq, hidden]`, the mask `[batch, 1
        or queries, seq]`. `adapt` is a function of the name, the input and the output of a
        projection that returns the output to use. Heads are side by side: `[batch, positions,
        hidden]`.
        """
        inputs = {"query": x, "key": block_input, "value": block_input}
        query, key, value = (
            self._split_heads(adapt(name, x, _join_heads(self._projections[name](x))))
            for name, x in inputs.items()
        )
        mask = _extend_mask(attention_mask, key)
        query, key, value = (tf.transpose(x, [0, 2, 1, 3]) for x in (query, key, value))
        context = tf.transpose(self._context(query, key, value, mask), [0, 2, 1, 3])
        return adapt("attention_output", _join_heads(context), self._output_dense(context))

    def _split_heads(self, x: tf.Tensor) -> tf.Tensor:
        """`[batch, positions, hidden]` as `[batch, positions, heads, size]`."""
        return tf.reshape(x, [*_leading_sizes(x), self._num_heads, self._key_dim])

    def call_for_first(
        self,
        x: tf.Tensor,
        block_input: tf.Tensor,
        attention_mask: tf.Tensor,
        changes: Mapping[str, DenseChange] = NO_CHANGES,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Attention with one query in each row, without keys and values of all positions.

        A head's score of a position is q (W_k x + b_k), so W_k is applied to the one query instead
        of to all positions. The head's result is the mean of W_v x over the positions, so W_v is
        applied to the mean of x. Changes of keys and values have no dropout. Shapes are as in
        `call_adapted`, with one query.
        """
        query = self._project(changes, "query", x, training=training)
        query = tf.multiply(query, 1.0 / math.sqrt(self._key_dim))
        block_input = tf.cast(block_input, query.dtype)
        a, b, scale = self._factors(changes.get("key"), query.dtype)
        key, value = (tf.cast(d.kernel, query.dtype) for d in (self._key_dense, self._value_dense))
        query_head = query[:, 0] if scale is None else query[:, 0] * scale
        query_key = tf.einsum("bnh,dnh->bnd", query_head, key)
        if a is not None:
            query_key += tf.einsum("bnr,dr->bnd", tf.einsum("bnh,rnh->bnr", query_head, b), a)
        scores = products(query_key, block_input, transpose_y=True)
        # The same for all positions, so the softmax removes it; but b_k has a gradient.
        scores += tf.reduce_sum(query_head * self._key_dense.bias, -1, keepdims=True)
        weights = self._weights(scores[:, :, tf.newaxis], attention_mask, query.dtype)[:, :, 0]
        mean = products(weights, block_input)
        result = tf.einsum("bnd,dnh->bnh", mean, value)
        a, b, scale = self._factors(changes.get("value"), query.dtype)
        if a is not None:
            result += tf.einsum("bnr,rnh->bnh", tf.einsum("bnd,dr->bnr", mean, a), b)
        result += tf.reduce_sum(weights, -1, keepdims=True) * self._value_dense.bias
        result = result if scale is None else result * scale
        return self._project(changes, "attention_output", result[:, tf.newaxis], training=training)

    def _factors(self, change: DenseChange | None, dtype: tf.DType) -> list[tf.Tensor | None]:
        """A change's a `[hidden, rank]`, b `[rank, heads, size]` and scale `[heads, size]`."""
        change = change or DenseChange()
        heads = [self._num_heads, self._key_dim]
        parts = ((change.a, None), (change.b, [-1, *heads]), (change.scale, heads))
        return [
            part if part is None else tf.cast(tf.reshape(part, shape or part.shape), dtype)
            for part, shape in parts
        ]


def _join_heads(x: tf.Tensor) -> tf.Tensor:
    """`[batch, positions, heads, size]` as `[batch, positions, hidden]`."""
    return tf.reshape(x, [*_leading_sizes(x), x.shape[2] * x.shape[3]])


def _leading_sizes(x: tf.Tensor) -> list[int | tf.Tensor]:
    """The first two dimensions, as integers where they are known."""
    return [tf.shape(x)[i] if x.shape[i] is None else x.shape[i] for i in range(2)]


def _extend_mask(mask: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """The mask, with ones for the positions that a module has put in front of the keys."""
    if mask.shape[-1] is not None and mask.shape[-1] == key.shape[1]:
        return mask
    added = tf.shape(key)[1] - tf.shape(mask)[-1]
    return tf.pad(mask, [[0, 0], [0, 0], [added, 0]], constant_values=1)
