"""The kinds of heads: classes, scores, any number of labels, and spans."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.data.questions.spans import SpanSettings
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import serving_spans, serving_texts
from adapter_bert_tf.heads.classifier import Classifier, pooled_logits
from adapter_bert_tf.heads.head import Head
from adapter_bert_tf.heads.span_labeler import LABELS, SpanLabeler, sequence_logits
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks import metrics, squad_metrics
from adapter_bert_tf.tasks.span_decoding import DecodingSettings

__all__ = ["HEADS", "Head", "head_of"]


def _check_texts(values: Mapping[str, Any]) -> None:
    if values["texts"] not in (1, 2) or values["max_seq_length"] < 5:
        raise InputError(f"inputs need 1 or 2 texts and room for them. Received: {preview(values)}")


def _check_spans(values: Mapping[str, Any]) -> None:
    for settings in (SpanSettings, DecodingSettings):
        settings(**{field.name: values[field.name] for field in dataclasses.fields(settings)})


CLASSIFICATION = Head(
    name="classification",
    file_name="classification",
    new_model=lambda encoder, outputs: Classifier(
        encoder, outputs, dropout=encoder.config["output_dropout"]
    ),
    logits=pooled_logits,
    num_outputs=len,
    inputs={"texts": 1, "max_seq_length": 128},
    check_inputs=_check_texts,
    serve_texts=serving_texts.of_text,
    serve_ids=serving_texts.of_ids,
    evaluate=metrics.evaluate,
    command="run_classifier.py --task_name={task}",
)
REGRESSION = dataclasses.replace(
    CLASSIFICATION,
    name="regression",
    new_model=lambda encoder, outputs: Classifier(
        encoder, outputs, dropout=encoder.config["output_dropout"], regression=True
    ),
    num_outputs=lambda labels: 1,
    labels=(),
)
MULTI_LABEL = dataclasses.replace(
    CLASSIFICATION,
    name="multi_label",
    file_name="multi_label",
    new_model=lambda encoder, outputs: Classifier(
        encoder, outputs, dropout=encoder.config["output_dropout"], multi_label=True
    ),
    evaluate=metrics.evaluate_sets,
    shares=tf.sigmoid,
)
SPAN = Head(
    name="span",
    file_name="span",
    new_model=lambda encoder, outputs: SpanLabeler(encoder),
    logits=sequence_logits,
    num_outputs=len,
    inputs=dataclasses.asdict(SpanSettings()) | dataclasses.asdict(DecodingSettings()),
    check_inputs=_check_spans,
    serve_texts=serving_spans.of_text,
    serve_ids=serving_spans.of_ids,
    evaluate=squad_metrics.evaluate,
    command="run_squad.py",
    unused=SpanLabeler.unused,
    labels=LABELS,
)
HEADS = {head.name: head for head in (CLASSIFICATION, REGRESSION, MULTI_LABEL, SPAN)}


def head_of(config: Mapping[str, Any]) -> Head:
    """The head of an adapter's config. Raises `InputError` for an unknown one."""
    name = config["head"]
    known = [head.file_name for head in HEADS.values()]
    if name not in known:
        raise InputError(
            f"head must be one of {list(dict.fromkeys(known))}. Received: {preview(name)}"
        )
    return HEADS["regression"] if config["regression"] else HEADS[name]
