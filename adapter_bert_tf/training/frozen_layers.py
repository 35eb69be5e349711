"""Outputs of the frozen layers for all training examples, computed before the first step."""

import time
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.data.batches import Features, eval_batches, eval_plan
from adapter_bert_tf.data.frozen_outputs import FrozenOutputs
from adapter_bert_tf.data.padding import PadTo
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.progress import RowProgress


class FrozenLayers(tf_keras.Model):
    """The frozen layers of an `AdapterBertEncoder` or `TaskEncoder` as a model."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Maps int32 `[batch, seq]` inputs to hidden states `[batch, seq, hidden]`."""
        return self.encoder.frozen_output(inputs)


def frozen_outputs(
    model: Any, features: Features, batch_size: int, max_seq_length: int, pad_to: PadTo
) -> FrozenOutputs:
    """Computes the frozen layers for all examples. Raises `InputError` if the disk is full."""
    start = time.monotonic()
    outputs = FrozenOutputs(features.lengths, model.encoder.config["hidden_size"])
    with model.distribute_strategy.scope():
        layers = FrozenLayers(model.encoder)
        layers.compile(jit_compile=model.jit_compile)
    plan = eval_plan(features, batch_size, pad_to)
    batches = inference.predict(
        layers, lambda shard: eval_batches(features, plan, max_seq_length, pad_to, shard)
    )
    progress = RowProgress("frozen layers", len(features))
    for rows, values in zip(plan, progress.track(batches), strict=True):
        outputs.put(rows[rows >= 0], values[rows >= 0])
    seconds = time.monotonic() - start
    size = f"{len(features):,} examples, {outputs.megabytes:.0f} MB"
    print(f"Frozen layers: computed once for {size}, {seconds:.1f} s.", flush=True)
    return outputs
