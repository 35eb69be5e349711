"""The masked-language model of BERT: it predicts word pieces that are masked in its input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import Leaf, TaskEncoder
from adapter_bert_tf.adapters.variable_specs import VariableSpec
from adapter_bert_tf.data.plain_text.masking import POSITIONS, TARGETS
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.heads.masked_words.scores import (
    MASKED_WORDS_LEAVE_OUT,
    masked_cross_entropy,
    masked_word_specs,
    row_sums,
    word_scores,
)
from adapter_bert_tf.heads.task_model import EncoderModel


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class MaskedWordModel(EncoderModel):
    """Scores of all word pieces at masked positions (Devlin et al. 2019, section 3.1).

    The head is a dense layer, the base's activation and a LayerNorm; then what the adapters did to
    the embeddings is undone (Pfeiffer et al. 2020, section 3.2), and the base's word embeddings
    decode the result, with a bias for each piece.
    """

    unused = MASKED_WORDS_LEAVE_OUT

    def __init__(self, encoder: AdapterBertEncoder | TaskEncoder, **kwargs: Any) -> None:
        super().__init__(encoder, **kwargs)
        leaves: dict[str, dict[str, VariableSpec]] = {}
        for name, spec in masked_word_specs(encoder.config).items():
            prefix, _, last = name.rpartition("/")
            leaves.setdefault(prefix, {})[last] = spec
        self.head = {prefix: _leaf(prefix, specs) for prefix, specs in leaves.items()}
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Scores of int32 inputs, float32 `[batch, places, words]`.

        Args:
          inputs: those of the encoder `[batch, seq]`, and `masked_positions [batch, places]`;
            without them all positions are predicted. With `masked_ids` and `masked_weights`
            `[batch, places]` the result is `row_sums` instead, `[batch, 3]`.
          training: whether there is dropout.
        """
        places = inputs.get(POSITIONS)
        sequence = self.encoder(inputs, places, training=training)["sequence_output"]
        module = self.encoder.module().for_call(inputs)
        scores = word_scores(self.encoder, sequence, module, self.head_variables())
        return row_sums(inputs, scores) if TARGETS in inputs else scores

    def head_variables(self) -> dict[str, tf.Variable]:
        """Dict from common name to variable of the head."""
        return {
            f"{prefix}/{name}": variable
            for prefix, leaf in self.head.items()
            for name, variable in leaf.values.items()
        }

    def named_variables(self) -> dict[str, tf.Variable]:
        """The encoder's named variables and those of the head."""
        return dict(self.encoder.named_variables()) | self.head_variables()

    def specs(self) -> dict[str, VariableSpec]:
        """Dict from the names of `named_variables` to their `VariableSpec`s."""
        return dict(self.encoder.specs()) | masked_word_specs(self.encoder.config)

    def training_loss(self) -> Loss:
        """The cross-entropy of masked pieces; see `masked_cross_entropy`."""
        return masked_cross_entropy


def _leaf(prefix: str, specs: Mapping[str, VariableSpec]) -> Leaf:
    with tf.name_scope(prefix):  # By its name it is known what does not decay.
        return Leaf(specs, name=prefix)
