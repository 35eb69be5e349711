"""Scores of all word pieces at masked positions, from weights that come with the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, Tensor, dense, layer_norm
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec, dense_specs
from adapter_bert_tf.data.plain_text.masking import POSITIONS, TARGETS, WEIGHTS
from adapter_bert_tf.lazy import tf

MASKED_WORDS_LEAVE_OUT = ("pooler",)  # Groups of variables that these scores do not depend on.
WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
# `LayerNorm` in a name stands for one of the encoder's.
DENSE, NORM, BIAS = "head/dense", "head/layer_norm", "head/bias"


def masked_word_specs(sizes: Sizes) -> dict[str, VariableSpec]:
    """Dict from common name to `VariableSpec` of the head; its decoder is the word embeddings."""
    hidden, words = (sizes["hidden_size"],), (sizes["vocab_size"],)
    return {
        **dense_specs(f"{DENSE}/", hidden, hidden, "head", start=0.02),
        f"{NORM}/gamma": VariableSpec(hidden, "head", start="ones"),
        f"{NORM}/beta": VariableSpec(hidden, "head"),
        BIAS: VariableSpec(words, "head"),
    }


def masked_word_logits(
    encoder: Any,
    inputs: Mapping[str, tf.Tensor],
    module: AdapterModule,
    values: Mapping[str, Tensor],
    stacked: str | None = None,
) -> tf.Tensor:
    """What `MaskedWordModel` computes, from given weights of the head, by common name."""
    module = module.for_call(inputs)
    places = inputs.get(POSITIONS)
    sequence = encoder(inputs, output_range=places, module=module)["sequence_output"]
    base = getattr(encoder, "func", encoder)  # The number of frozen layers may be bound to it.
    return word_scores(base, sequence, module, values, stacked)


def word_scores(
    encoder: Any,
    sequence: tf.Tensor,
    module: AdapterModule,
    values: Mapping[str, Tensor],
    stacked: str | None = None,
) -> tf.Tensor:
    """Scores of all pieces, float32 `[batch, places, words]`.

    Args:
      encoder: the base, whose word embeddings are the decoder; its activation is that of the head,
        as in Google's and Hugging Face's pretraining.
      sequence: `[batch, places, hidden]`, the encoder's output at the positions to predict.
      module: of the call; `invert` undoes what it does to embeddings.
      values: of the head, by common name.
      stacked: as in `ops.dense`.
    """
    x = tf.cast(sequence, tf.float32)
    x = dense(x, values[f"{DENSE}/kernel"], values[f"{DENSE}/bias"], stacked)
    x = ACTIVATION_FUNCTIONS[encoder.config["activation"]](x)
    gamma, beta = values[f"{NORM}/gamma"], values[f"{NORM}/beta"]
    x = layer_norm(x, gamma, beta, encoder.config["norm_epsilon"], stacked)
    x = tf.cast(module.invert(x), tf.float32)
    embeddings = tf.cast(encoder.named_variables()[WORD_EMBEDDINGS], tf.float32)
    # In one product: those that broadcast are suspected of memory errors (docs/design.md).
    flat = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), embeddings, transpose_b=True)
    scores = tf.reshape(flat, tf.concat([tf.shape(x)[:-1], [embeddings.shape[0]]], 0))
    scores.set_shape([*x.shape[:-1], embeddings.shape[0]])
    bias = values[BIAS]
    return scores + (bias if stacked is None else bias[:, tf.newaxis])


def masked_cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Weighted sum of the cross-entropies of a row's places, float32 `[batch]`.

    Labels are float32 `[batch, places, 2]`, the piece and its weight; float32 holds every id.
    """
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.cast(labels[..., 0], tf.int32), logits
    )
    return tf.reduce_sum(entropy * labels[..., 1], -1)


def row_sums(inputs: Mapping[str, tf.Tensor], logits: tf.Tensor) -> tf.Tensor:
    """Sums over the places of each row, float32 `[batch, 3]`: cross-entropies, hits, weights."""
    targets, weights = inputs[TARGETS], inputs[WEIGHTS]
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
    hits = tf.cast(tf.argmax(logits, -1, tf.int32) == targets, tf.float32)
    each = tf.stack([entropy * weights, hits * weights, weights], -1)
    return tf.reduce_sum(each, 1)
