"""Dropout whose masks can be drawn again: a function of seed, layer, step and replica."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
import tf_keras

LAYER_STRIDE = 1_000_003  # Keeps the layers' seeds of small seeds apart.
VALUES = 2**16  # Of the bits that decide about one value.


class Part:
    """Which part of its batch a step is computing, of those that it takes one after the other.

    Args:
      count: number of parts of a batch.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.number: int | tf.Tensor = 0

    @contextlib.contextmanager
    def at(self, number: tf.Tensor) -> Iterator[None]:
        """A context in which a graph is traced that computes the part `number`, int32."""
        self.number = number
        try:
            yield
        finally:
            self.number = 0


@dataclasses.dataclass(frozen=True)
class Masks:
    """Draws the masks of one dropout layer; stands in for the layer's own random generator.

    The random state of ordinary dropout is hidden in TensorFlow's kernels, so that a run that is
    taken up again would go on with other masks. These depend on nothing that a checkpoint lacks.

    Args:
      seed: int32, of the run and the layer.
      step: variable, the number of steps done.
      part: of the step's batch.
    """

    seed: int
    step: tf.Variable
    part: Part

    def _maybe_init(self) -> None:
        """What a tf_keras layer calls before its first use; there is nothing to make."""

    def dropout(self, inputs: tf.Tensor, rate: float, noise_shape: Any = None) -> tf.Tensor:
        """`inputs` with a share `rate` of them zero, the others scaled up."""
        context = tf.distribute.get_replica_context()
        parts = tf.cast(self.step, tf.int32)
        if self.part.count > 1:
            parts = parts * self.part.count + self.part.number
        draw = parts * context.num_replicas_in_sync + context.replica_id_in_sync_group
        shape = tf.shape(inputs) if noise_shape is None else noise_shape
        return dropped(inputs, rate, shape, tf.stack([self.seed, draw]))


def dropped(inputs: tf.Tensor, rate: float, shape: Any, seed: tf.Tensor) -> tf.Tensor:
    """Dropout from 16 random bits a value, half of what TensorFlow's draws.

    The share that is dropped is `rate` rounded to a 65,536th, and the rest is scaled by just that,
    so that the mean is kept.

    Args:
      inputs: float of any shape.
      rate: share to drop, from 0 to below 1.
      shape: int32, of the mask; broadcast to that of `inputs`.
      seed: int32 `[2]`.
    """
    below = min(round(rate * VALUES), VALUES - 1)
    if below == 0:
        return inputs
    count = tf.reduce_prod(shape)
    pairs = tf.random.stateless_uniform([(count + 1) // 2], seed, None, None, tf.int32)
    bits = tf.reshape(tf.reshape(tf.bitcast(pairs, tf.int16), [-1])[:count], shape)
    kept = bits >= tf.constant(below - VALUES // 2, tf.int16)
    return tf.where(kept, inputs * (VALUES / (VALUES - below)), tf.zeros([], inputs.dtype))


def seed_dropout(
    model: tf_keras.Model, seed: int, step: tf.Variable, part: Part | None = None
) -> None:
    """Gives all dropout layers of a model their `Masks`.

    Args:
      model: `tf_keras.Model`.
      seed: int, of the run.
      step: variable, the number of steps done, for example an optimizer's `iterations`.
      part: of a batch that is computed in parts.
    """
    part = part or Part()
    layers = [layer for layer in model.submodules if isinstance(layer, tf_keras.layers.Dropout)]
    for number, layer in enumerate(layers):
        layer._random_generator = Masks((seed * LAYER_STRIDE + number) % 2**31, step, part)
