"""The kinds of heads: which model trains one, and the same computation from given weights."""

from adapter_bert_tf.adapters.bottleneck import dense
from adapter_bert_tf.adapters.parts import GivenParts
from adapter_bert_tf.tasks.classifier import Classifier
from adapter_bert_tf.tasks.span_labeler import SpanLabeler, span_logits

HEADS = {"classification": Classifier, "span": SpanLabeler}


def new_model(head, encoder, num_outputs, regression=False):
    """The model of a head, with random weights; see `Classifier` and `SpanLabeler`."""
    if head == "span":
        return SpanLabeler(encoder)
    return Classifier(
        encoder, num_outputs, dropout=encoder.config["output_dropout"], regression=regression
    )


def logits_of(head, encoder, inputs, adapter, values):
    """Logits as `Classifier` and `SpanLabeler` compute them, from weights of the call.

    Args:
      head: a key of `HEADS`.
      encoder: `AdapterBertEncoder`.
      inputs: dict of int32 `[batch, seq]`.
      adapter: `AdapterConfig`, or None for no adapters.
      values: dict from common name to tensor, as for `GivenParts`, with the head's
        (`head/kernel [hidden, outputs]`, `head/bias [outputs]`).

    Returns:
      float32 `[batch, outputs]`, or `[batch, 2, seq]` for `span`.
    """
    parts, kernel, bias = GivenParts(adapter, values), values["head/kernel"], values["head/bias"]
    if head == "span":
        sequence = encoder(inputs, parts=parts)["sequence_output"]
        return span_logits(dense(sequence, kernel, bias), inputs["input_mask"])
    pooled = encoder(inputs, output_range=1, parts=parts)["pooled_output"]
    return dense(pooled, kernel, bias)
