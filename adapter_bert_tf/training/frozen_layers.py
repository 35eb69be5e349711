"""The frozen layers alone: what they give for all training examples, before the first step."""

import time
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.data.batches import Features, eval_batches, eval_plan
from adapter_bert_tf.data.frozen_outputs import FrozenOutputs
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.progress import Seen


class FrozenLayers(tf_keras.Model):
    """The layers of an encoder that are not trained.

    Args:
      encoder: `AdapterBertEncoder` or `TaskEncoder` with frozen layers.
    """

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """`[batch, seq, hidden]`, of int32 `[batch, seq]` inputs."""
        return self.encoder.frozen(inputs)


def outputs(
    model: Any, features: Features, batch_size: int, max_seq_length: int, pad_to: int | None
) -> FrozenOutputs:
    """What the frozen layers of a model give for all examples; says so.

    Args:
      model: `EncoderModel`, compiled.
      features: of the examples.
      batch_size, max_seq_length, pad_to: as of `eval_batches`.

    Raises:
      InputError: when the disk has no room for it.
    """
    began = time.monotonic()
    kept = FrozenOutputs(features.lengths, model.encoder.config["hidden_size"])
    with model.distribute_strategy.scope():
        layers = FrozenLayers(model.encoder)
        layers.compile(jit_compile=model.jit_compile)
    plan = eval_plan(features, batch_size, pad_to)
    found = inference.predict(
        layers, lambda share: eval_batches(features, plan, max_seq_length, pad_to, share)
    )
    shown = Seen("frozen layers", len(features))
    for rows, values in zip(plan, found, strict=True):
        kept.put(rows[rows >= 0], shown.counted(values[rows >= 0]))
    seconds = time.monotonic() - began
    print(
        f"Frozen layers: computed once for {len(features):,} examples, {kept.megabytes:.0f} MB, "
        f"{seconds:.1f} s.",
        flush=True,
    )
    return kept
