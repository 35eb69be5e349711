"""Word-piece tokenization in TensorFlow, the same in training and in exported models."""

from adapter_bert_tf.data.tokenization.encoder import (
    TextEncoder,
    pad_inputs,
    require_equal_lengths,
    text_encoder,
)

__all__ = ["TextEncoder", "pad_inputs", "require_equal_lengths", "text_encoder"]
