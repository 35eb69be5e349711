"""What a kind of head is: all that differs between classes, scores and spans, as one record."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.modules import module_from_values
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.heads.task_model import TaskModel, head_specs


@dataclasses.dataclass(frozen=True)
class Head:
    """A kind of head.

    Args:
      name: its key in `HEADS`.
      file_name: what `adapter_config.json` calls it.
      new_model: function of an encoder and a number of outputs: the model that trains it.
      logits: function of (encoder, inputs, parts, kernel, bias, stacked): what the model computes,
        from given weights of the head `[hidden, outputs]`, `[outputs]`.
      num_outputs: function of the labels: the width of the dense layer.
      inputs: how texts become inputs: the settings that a task may have, and their defaults.
      check_inputs: function of such settings. Raises `InputError`.
      serve_texts: function of (run, config, pieces): the signature that takes texts.
      serve_ids: function of (run, config): the signature that takes word-piece ids.
      evaluate: the metrics of predictions.
      command: what trains and evaluates it, with `{task}`.
      shares: function of logits: the probabilities of the labels.
      unused: groups of variables that its outputs do not depend on.
      labels: the labels, if they are always the same.
    """

    name: str
    file_name: str
    new_model: Callable[[Any, int], TaskModel]
    logits: Callable[..., tf.Tensor]
    num_outputs: Callable[[Sequence[str]], int]
    inputs: Mapping[str, Any]
    check_inputs: Callable[[Mapping[str, Any]], None]
    serve_texts: Callable[..., Any]
    serve_ids: Callable[..., Any]
    evaluate: Callable[..., dict[str, float]]
    command: str
    shares: Callable[[tf.Tensor], tf.Tensor] = tf.nn.softmax
    unused: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None

    def specs(self, hidden_size: int, labels: Sequence[str]) -> dict[str, Any]:
        """Dict from common name to `Spec` of the dense layer."""
        return head_specs(hidden_size, self.num_outputs(labels))

    def logits_of(
        self,
        encoder: Any,
        inputs: Mapping[str, tf.Tensor],
        parts: Any,
        values: Mapping[str, Tensor],
        stacked: str | None = None,
    ) -> tf.Tensor:
        """Logits as the model of `new_model` computes them, from weights of the call.

        Args:
          encoder: `AdapterBertEncoder`.
          inputs: dict of int32 `[batch, seq]`.
          parts: `PartsConfig` of what runs beside the encoder, or None.
          values: dict from common name to tensor, as for `given_parts`, with the head's
            (`head/kernel [hidden, outputs]`, `head/bias [outputs]`).
          stacked: as for `given_parts`.

        Returns:
          float32 `[batch, outputs]`, or `[batch, 2, seq]` for spans.
        """
        given = module_from_values(parts, values, stacked)
        kernel, bias = values["head/kernel"], values["head/bias"]
        return self.logits(encoder, inputs, given, kernel, bias, stacked)
