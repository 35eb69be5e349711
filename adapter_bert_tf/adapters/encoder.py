"""BERT with adapters: Model Garden's encoder, and the only file that knows its private attributes.

The attributes used here are those of tf-models-official 2.20; `tests/adapters/encoder_test.py`
fails if another version names them differently.
"""

import functools
import math

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers, networks

from adapter_bert_tf.adapters.bottleneck import ACTIVATION_FUNCTIONS
from adapter_bert_tf.adapters.layers import AdapterStack, as_config
from adapter_bert_tf.adapters.parts import Parts
from adapter_bert_tf.errors import InputError


class Attention(tf_keras.layers.MultiHeadAttention):
    """tf_keras' multi-head attention with a float32 softmax, whatever the compute dtype."""

    def _compute_attention(self, query, key, value, attention_mask=None, training=None):
        query = tf.multiply(query, 1.0 / math.sqrt(self._key_dim))
        scores = tf.cast(tf.einsum("btnh,bsnh->bnts", query, key), tf.float32)
        if attention_mask is not None:
            scores += (1.0 - tf.cast(attention_mask[:, tf.newaxis], tf.float32)) * -1e9
        weights = tf.cast(tf.nn.softmax(scores), value.dtype)
        weights = self._dropout_layer(weights, training=training)
        return tf.einsum("bnts,bsnh->btnh", weights, value), weights


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class AdapterEncoderBlock(layers.TransformerEncoderBlock):
    """A post-LN transformer block with room for an adapter after each sublayer.

    Houlsby et al. 2019, Figure 2: the adapter comes after the sublayer's projection (and dropout)
    and before the skip connection and the LayerNorm.

    Raises:
      InputError: for `norm_first=True`, an order that the paper does not define.
    """

    def __init__(self, *args, norm_first=False, **kwargs):
        if norm_first:
            raise InputError(
                "Adapters are defined for BERT's post-LN blocks (Houlsby et al. 2019, Figure 2). "
                "Received: norm_first=True"
            )
        super().__init__(*args, norm_first=False, **kwargs)

    def build(self, input_shape):
        super().build(input_shape)
        config = self._attention_layer.get_config()
        shapes = ("query_shape", "key_shape", "value_shape")  # Of a built layer; this is not one.
        self._attention_layer = Attention(**{k: v for k, v in config.items() if k not in shapes})

    def call(self, inputs, output_range=None, adapters=None, norm=None):
        """Runs the block.

        Args:
          inputs: pair of the block's input `[batch, seq, hidden]` and an attention mask
            `[batch, 1 or seq, seq]`, 1 for what may be attended to.
          output_range: how many leading positions to compute; None for all.
          adapters: dict with an adapter for `attention`, `feed_forward`, both or neither.
          norm: function of a sublayer's name and the block's own LayerNorm; what it returns is
            used instead.

        Returns:
          `[batch, output_range or seq, hidden]`, float32.
        """
        everything, attention_mask = inputs
        adapters, norm = adapters or {}, norm or (lambda sublayer, own: own)
        attention_norm = norm("attention", self._attention_layer_norm)
        output_norm = norm("feed_forward", self._output_layer_norm)
        x = everything[:, :output_range]

        output = self._attention_layer(x, everything, attention_mask=attention_mask)
        output = self._attention_dropout(output)
        output = _adapt(adapters.get("attention"), output, x, attention_norm)
        x = attention_norm(x + output)

        output = self._intermediate_dense(x)
        output = self._intermediate_activation_layer(output)
        output = self._output_dense(output)
        output = self._output_dropout(output)
        output = _adapt(adapters.get("feed_forward"), output, x, output_norm)
        return output_norm(x + output)


def _adapt(adapter, output, residual, layer_norm):
    """The adapted sublayer output, or the output itself, in the dtype of the skip connection."""
    if adapter is None:
        return tf.cast(output, residual.dtype)
    return adapter(output, residual=residual, layer_norm=layer_norm)


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class AdapterBertEncoder(networks.BertEncoderV2):
    """Model Garden's `BertEncoderV2` with adapters in its blocks.

    The base keeps the object paths that Model Garden's checkpoints expect; adapters live beside it
    in `adapters`, an `AdapterStack`, or None.

    Args:
      vocab_size, hidden_size, num_layers, num_attention_heads, inner_dim, type_vocab_size: sizes.
      max_sequence_length: rows of the position table.
      activation: of the feed-forward sublayer, a name in `ACTIVATION_FUNCTIONS`.
      output_dropout, attention_dropout: rates.
      norm_epsilon: of every LayerNorm.
      initializer_range: standard deviation of the base's random weights.
      adapter: `AdapterConfig`, or None for the bare base.
    """

    def __init__(
        self,
        vocab_size,
        hidden_size=768,
        num_layers=12,
        num_attention_heads=12,
        inner_dim=3072,
        type_vocab_size=2,
        max_sequence_length=512,
        activation="gelu",
        output_dropout=0.1,
        attention_dropout=0.1,
        norm_epsilon=1e-12,
        initializer_range=0.02,
        adapter=None,
        **kwargs,
    ):
        sizes = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "num_layers": num_layers,
            "num_attention_heads": num_attention_heads,
            "inner_dim": inner_dim,
            "type_vocab_size": type_vocab_size,
            "max_sequence_length": max_sequence_length,
            "output_dropout": output_dropout,
            "attention_dropout": attention_dropout,
        }
        initializer = tf_keras.initializers.TruncatedNormal(stddev=initializer_range)
        super().__init__(
            initializer=initializer,
            inner_activation=ACTIVATION_FUNCTIONS[activation],
            **sizes,
            **kwargs,
        )
        adapter = as_config(adapter)
        self.config = sizes | {
            "activation": activation,
            "norm_epsilon": norm_epsilon,
            "initializer_range": initializer_range,
        }
        self.adapter_config = adapter
        self._embedding_norm_layer = tf_keras.layers.LayerNormalization(
            name="embeddings/layer_norm", epsilon=norm_epsilon, dtype=tf.float32
        )
        self._transformer_layers = [
            AdapterEncoderBlock(
                num_attention_heads=num_attention_heads,
                inner_dim=inner_dim,
                inner_activation=ACTIVATION_FUNCTIONS[activation],
                norm_epsilon=norm_epsilon,
                output_dropout=output_dropout,
                attention_dropout=attention_dropout,
                kernel_initializer=tf_keras.initializers.TruncatedNormal(stddev=initializer_range),
                name=f"transformer/layer_{i}",
            )
            for i in range(num_layers)
        ]
        self.adapters = adapter and AdapterStack(adapter, num_layers, hidden_size, name="adapters")
        self(self.inputs)  # Creates every variable now, so that weights can be assigned.

    def call(self, inputs, output_range=None, parts=None):
        """Encodes a batch.

        Args:
          inputs: dict of int32 `[batch, seq]`: `input_word_ids`, `input_mask`, `input_type_ids`.
          output_range: how many leading positions the last block computes; None for all. 1 is
            enough, and exact, for classification from [CLS].
          parts: `Parts` of this call, instead of the encoder's own adapters.

        Returns:
          dict with `sequence_output [batch, output_range or seq, hidden]` and
          `pooled_output [batch, hidden]`.
        """
        if self.adapters is not None and not self.adapters.built:
            self.adapters.build((None, None, self.config["hidden_size"]))
        parts = parts or self.adapters or Parts()
        mask = inputs["input_mask"][:, tf.newaxis, :]
        x = self._get_embeddings(
            inputs["input_word_ids"], inputs["input_type_ids"], None, None, None
        )
        norm = parts.norm("bert/embeddings/LayerNorm", self._embedding_norm_layer)
        x = self._embedding_dropout(norm(x))
        last = len(self._transformer_layers) - 1
        for i, block in enumerate(self._transformer_layers):
            x = block(
                (x, mask),
                output_range=output_range if i == last else None,
                adapters=parts.adapters_at(i),
                norm=functools.partial(parts.block_norm, i),
            )
        return {"sequence_output": x, "pooled_output": parts.pooler(self._pooler_layer)(x[:, 0])}

    def base_variables(self):
        """Dict from the variable names of Google's checkpoints to the base's variables."""
        positions = self._position_embedding_layer
        named = {
            "bert/embeddings/word_embeddings": self._embedding_layer.embeddings,
            "bert/embeddings/position_embeddings": positions._position_embeddings,
            "bert/embeddings/token_type_embeddings": self._type_embedding_layer.embeddings,
            **_norm("bert/embeddings/LayerNorm", self._embedding_norm_layer),
        }
        for i, block in enumerate(self._transformer_layers):
            named |= _block_variables(f"bert/encoder/layer_{i}", block)
        return named | _dense("bert/pooler/dense", self._pooler_layer)

    def named_variables(self):
        """`base_variables` and, if there are any, those of the adapters (`adapters/...`)."""
        adapters = self.adapters.named_variables() if self.adapters is not None else {}
        return self.base_variables() | adapters

    def get_config(self):
        adapter = self.adapter_config and dict(self.adapter_config.__dict__)
        return self.config | {"adapter": adapter, "name": self.name}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def _block_variables(prefix, block):
    attention = block._attention_layer
    return {
        **_dense(f"{prefix}/attention/self/query", attention._query_dense),
        **_dense(f"{prefix}/attention/self/key", attention._key_dense),
        **_dense(f"{prefix}/attention/self/value", attention._value_dense),
        **_dense(f"{prefix}/attention/output/dense", attention._output_dense),
        **_norm(f"{prefix}/attention/output/LayerNorm", block._attention_layer_norm),
        **_dense(f"{prefix}/intermediate/dense", block._intermediate_dense),
        **_dense(f"{prefix}/output/dense", block._output_dense),
        **_norm(f"{prefix}/output/LayerNorm", block._output_layer_norm),
    }


def _dense(prefix, layer):
    return {f"{prefix}/kernel": layer.kernel, f"{prefix}/bias": layer.bias}


def _norm(prefix, layer):
    return {f"{prefix}/gamma": layer.gamma, f"{prefix}/beta": layer.beta}
