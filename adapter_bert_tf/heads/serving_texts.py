"""Signatures of SavedModels that take texts or word-piece ids."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter_bert_tf.lazy import tf

if TYPE_CHECKING:
    from adapter_bert_tf.data.tokenization import TextEncoder

Config: TypeAlias = Mapping[str, Any]  # Of an adapter.
Tensors: TypeAlias = dict[str, "tf.Tensor"]
Run: TypeAlias = Callable[[Tensors], "tf.Tensor"]  # From encoder inputs to logits.
# From encoder inputs and int32 `[batch]`, the number of each row's task, to logits.
RunRows: TypeAlias = Callable[[Tensors, "tf.Tensor"], "tf.Tensor"]
INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


class RowAnswers(abc.ABC):
    """Answers to texts of several tasks of one type; a method of the type makes it."""

    @abc.abstractmethod
    def __call__(self, which: tf.Tensor, *texts: tf.Tensor) -> Tensors:
        """Answers texts, string `[batch]` each; `which` is int32 `[batch]`, each row's task."""

    @abc.abstractmethod
    def spread(self, answer: Tensors, rows: tf.Tensor, batch: tf.Tensor) -> Tensors:
        """The answer to some `rows` as one to `batch` rows, of which the others have none."""


def text_signature(names: Sequence[str], answer: Callable[..., Tensors]) -> Any:
    """The signature with string arguments `[batch]`, which `answer` takes in this order.

    TensorFlow does not refuse a single string, which is a batch of one.
    """

    @tf.function
    def serving_default(**texts: tf.Tensor) -> Tensors:
        return answer(*(_as_batch(texts[name]) for name in names))

    specs = {name: tf.TensorSpec([None], tf.string, name=name) for name in names}
    return serving_default.get_concrete_function(**specs)


def _as_batch(text: tf.Tensor) -> tf.Tensor:
    """A batch of one for a single string; a batch as it is.

    TensorFlow removes `tf.reshape` here, because the signature promises a batch.
    """
    return tf.where(tf.fill([tf.size(text)], True), text, "")


def id_specs() -> dict[str, tf.TensorSpec]:
    """The arguments of the signature `ids`."""
    return {name: tf.TensorSpec([None, None], tf.int32, name=name) for name in INPUTS}


def id_signature(answer: Callable[[Tensors], Tensors]) -> Any:
    """The signature that takes word-piece ids, a concrete function."""

    @tf.function
    def ids(**inputs: tf.Tensor) -> Tensors:
        return answer(inputs)

    return ids.get_concrete_function(**id_specs())


class Pieces:
    """Word pieces of raw texts: a function for each length and number of texts, traced once.

    Signatures that share these are small: tokenization is half of their graph. The length of
    `encoder` does not matter.
    """

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self.functions: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, max_seq_length: int, *texts: tf.Tensor) -> Any:
        """Ragged word ids and type ids of one or two texts, string `[batch]`."""
        encode = self.encoder.with_length(max_seq_length).__call__
        return self.shared((len(texts), max_seq_length), encode, *texts)

    def shared(self, key: tuple[Any, ...], run: Callable[..., Any], *texts: tf.Tensor) -> Any:
        """What `run` returns for texts, string `[batch]` each; it is traced once for each key."""
        if key not in self.functions:
            with tf.init_scope():  # Not inside the function that is being traced.
                self.functions[key] = tf.function(run).get_concrete_function(
                    *[tf.TensorSpec([None], tf.string)] * len(texts)
                )
        return self.functions[key](*texts)
