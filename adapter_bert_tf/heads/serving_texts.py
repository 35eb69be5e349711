"""Signatures that answer raw texts, or word pieces, by what a task type makes of logits."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import tensorflow as tf

from adapter_bert_tf.data.tokenization import TextEncoder, pad_inputs, require_equal_lengths

Config: TypeAlias = Mapping[str, Any]  # Of an adapter.
Tensors: TypeAlias = dict[str, tf.Tensor]
Run: TypeAlias = Callable[[Tensors], tf.Tensor]  # From encoder inputs to logits.
Served: TypeAlias = Callable[[tf.Tensor, Config], Tensors]  # From logits to what is returned.
INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


def text_specs(config: Config) -> dict[str, tf.TensorSpec]:
    """The string arguments of a task's signature: `text_a` and, for pairs, `text_b`."""
    names = ("text_a", "text_b")[: config["inputs"]["texts"]]
    return {name: tf.TensorSpec([None], tf.string, name=name) for name in names}


def id_specs() -> dict[str, tf.TensorSpec]:
    """The arguments of the signature `ids`."""
    return {name: tf.TensorSpec([None, None], tf.int32, name=name) for name in INPUTS}


class Pieces:
    """Word pieces of raw texts: a function for each length and number of texts, traced once.

    Signatures that share these are small: tokenization is half of their graph.

    Args:
      encoder: `TextEncoder`, for whatever length.
    """

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self.functions: dict[tuple[int, int], Callable[..., Any]] = {}

    def __call__(self, settings: Mapping[str, Any], *texts: tf.Tensor) -> Any:
        """Ragged word ids and type ids, see `TextEncoder`.

        Args:
          settings: dict with `max_seq_length`.
          *texts: one or two string tensors `[batch]`.
        """
        key = (len(texts), settings["max_seq_length"])
        if key not in self.functions:
            encode = tf.function(self.encoder.with_length(settings["max_seq_length"]).__call__)
            with tf.init_scope():  # Not inside the function that is being traced.
                self.functions[key] = encode.get_concrete_function(
                    *[tf.TensorSpec([None], tf.string)] * len(texts)
                )
        return self.functions[key](*texts)


def of_text(run: Run, config: Config, pieces: Pieces, served: Served) -> Any:
    """The signature that takes `text_a` and, for pairs, `text_b`, a concrete function.

    Args:
      run: function of encoder inputs to logits.
      config: of the adapter.
      pieces: `Pieces` of the base.
      served: function of logits and `config` to what the signature returns.
    """

    @tf.function
    def serving_default(**texts: tf.Tensor) -> Tensors:
        inputs = pad_inputs(*pieces(config["inputs"], *require_equal_lengths(texts.values())))
        return served(run(inputs), config)

    return serving_default.get_concrete_function(**text_specs(config))


def of_ids(run: Run, config: Config, served: Served) -> Any:
    """The signature that takes word-piece ids, a concrete function; arguments as in `of_text`."""

    @tf.function
    def ids(**inputs: tf.Tensor) -> Tensors:
        return served(run(inputs), config)

    return ids.get_concrete_function(**id_specs())
