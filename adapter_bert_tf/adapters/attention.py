"""Multi-head attention of the base, as it is trained and served here.

The private attributes are those of tf_keras 2.20; `tests/adapters/encoder_test.py` fails if another
version names them differently. As in the encoder, what a call runs has no `super()`.
"""

import math
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.base_layers import put_dense


class Attention(tf_keras.layers.MultiHeadAttention):
    """tf_keras' multi-head attention with a float32 softmax, whatever the compute dtype.

    Args:
      product_dtype: as in `Dense`; None: the compute dtype.
    """

    def __init__(self, *args: Any, product_dtype: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.product_dtype = product_dtype

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"product_dtype": self.product_dtype}

    def _build_from_signature(self, query: Any, value: Any, key: Any = None) -> None:
        tf_keras.layers.MultiHeadAttention._build_from_signature(self, query, value, key)
        names = ("_query_dense", "_key_dense", "_value_dense", "_output_dense")
        put_dense(self, names, self.product_dtype)

    def _compute_attention(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        query = tf.multiply(query, 1.0 / math.sqrt(self._key_dim))
        scores = tf.einsum("btnh,bsnh->bnts", query, key)
        weights = self._weights(scores, attention_mask, value.dtype)
        return tf.einsum("bnts,bsnh->btnh", weights, value), weights

    def _weights(
        self, scores: tf.Tensor, attention_mask: tf.Tensor | None, dtype: tf.DType
    ) -> tf.Tensor:
        """The shares of all positions `[batch, heads, queries, seq]`, some of them dropped."""
        scores = tf.cast(scores, tf.float32)
        if attention_mask is not None:
            scores += (1.0 - tf.cast(attention_mask[:, tf.newaxis], tf.float32)) * -1e9
        return self._dropout_layer(tf.cast(tf.nn.softmax(scores), dtype))

    def of_first(self, x: tf.Tensor, everything: tf.Tensor, attention_mask: tf.Tensor) -> tf.Tensor:
        """As a call, for one query a row, without the keys and values of all positions.

        A head's score of a position is q (W_k x + b_k): W_k goes to the one query instead of to all
        positions. What it reads is W_v times the mean of the positions, instead of the mean of W_v
        times each.

        Args:
          x: `[batch, 1, hidden]`.
          everything: `[batch, seq, hidden]`.
          attention_mask: `[batch, 1, seq]`.
        """
        query = tf.multiply(self._query_dense(x), 1.0 / math.sqrt(self._key_dim))
        everything = tf.cast(everything, query.dtype)
        key, value = (tf.cast(d.kernel, query.dtype) for d in (self._key_dense, self._value_dense))
        asked = tf.einsum("bnh,dnh->bnd", query[:, 0], key)
        scores = tf.matmul(asked, everything, transpose_b=True)
        # The same for all positions, so nothing under the softmax; but b_k has a gradient.
        scores += tf.reduce_sum(query[:, 0] * self._key_dense.bias, -1, keepdims=True)
        weights = self._weights(scores[:, :, tf.newaxis], attention_mask, query.dtype)[:, :, 0]
        read = tf.einsum("bnd,dnh->bnh", tf.matmul(weights, everything), value)
        read += tf.reduce_sum(weights, -1, keepdims=True) * self._value_dense.bias
        return self._output_dense(read[:, tf.newaxis])
