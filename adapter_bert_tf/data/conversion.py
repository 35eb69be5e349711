"""Raw texts and labels as what `fit` of a Keras model takes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.labels import find_label
from adapter_bert_tf.data.tables.indicator_columns import is_several
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError, require_lists
from adapter_bert_tf.sanitize import preview


def examples(
    encoder: TextEncoder,
    texts: Iterable[str],
    labels: Iterable[Any],
    names: Sequence[str] = (),
    others: Iterable[str] | None = None,
) -> tuple[dict[str, tf.Tensor], np.ndarray]:
    """Texts and labels, converted for `fit`.

        task = model.add_adapter("stars", ["bad", "good"])
        task.compile("adam", task.training_loss())
        task.fit(*abt.examples(encoder, texts, labels, ["bad", "good"]), epochs=5)

    Args:
      encoder: `TextEncoder`.
      texts: strings.
      labels: for each text one of `names`, or a list, set or array of them; without `names` a
        score.
      names: all labels, in the order of the model's outputs. A number stands for its text: 1 is
        the label `"1"`, and so is 1.0. Empty: the labels are scores.
      others: the second text of each, for pairs.

    Returns:
      (dict of int32 `[batch, seq]` encoder inputs; int32 `[batch]` label ids, float32
      `[batch, labels]` of 0 and 1 for lists of labels, or float32 `[batch]` scores).

    Raises:
      InputError: for an unknown label, a score that is not a number, lists of different lengths,
        repeated names, or a value that is not a list.
    """
    require_lists(texts=texts, labels=labels, names=names)
    if others is not None:
        require_lists(others=others)
    columns = [_column(texts)] if others is None else [_column(texts), _column(others)]
    label_values = _column(labels)
    lengths = [len(column) for column in (*columns, label_values)]
    if len(set(lengths)) > 1:
        raise InputError(f"Each text has one label. Received: lists of the lengths {lengths}.")
    as_texts = list(map(str, names))
    if len(set(as_texts)) < len(as_texts):
        raise InputError(f"The names of labels differ, as texts. Received: {preview(names)}")
    convert = _ids if as_texts else _scores
    return encoder.inputs(*columns), convert(label_values, as_texts)


def _column(values: Iterable[Any]) -> Sequence[Any]:
    return values if hasattr(values, "__len__") else list(values)  # type: ignore[return-value]


def _ids(labels: Sequence[Any], names: list[str]) -> np.ndarray:
    are_sets = [is_several(label) for label in labels]
    if any(are_sets) and not all(are_sets):
        other = are_sets.index(not are_sets[0])
        raise InputError(
            "Either all rows have a list or set of labels or each has one label. "
            f"Received, at 0 and {other}: {preview(labels[0])}, {preview(labels[other])}"
        )
    if all(are_sets):
        indicators = np.zeros((len(labels), len(names)), np.float32)
        for number, (row, label_set) in enumerate(zip(indicators, labels, strict=True)):
            row[[_id(label, names, number) for label in label_set]] = 1.0
        return indicators
    return np.array([_id(label, names, i) for i, label in enumerate(labels)], np.int32)


def _id(label: Any, names: list[str], number: int) -> int:
    if (name := find_label(str(label), names)) in names:
        return names.index(name)
    raise InputError(f"A label is one of {preview(names)}. Received, at {number}: {preview(label)}")


def _scores(labels: Sequence[Any], _: list[str]) -> np.ndarray:
    try:
        scores = np.array([float(label) for label in labels], np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Without names of labels each is a score, a number. Received: {preview(labels)}"
        ) from error
    if not np.isfinite(scores).all():
        raise InputError(f"Scores are finite numbers. Received: {preview(labels)}")
    return scores
