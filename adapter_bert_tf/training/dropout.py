"""Dropout whose masks can be drawn again: a function of seed, layer, step and replica."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
import tf_keras

LAYER_STRIDE = 1_000_003  # Keeps the layers' seeds of small seeds apart.


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
        return tf.nn.experimental.stateless_dropout(
            inputs, rate, seed=tf.stack([self.seed, draw]), noise_shape=noise_shape
        )


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
