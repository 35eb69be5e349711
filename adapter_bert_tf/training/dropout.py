"""Reproducible dropout: masks are a function of seed, layer, step and replica."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters import gradients

LAYER_STRIDE = 1_000_003  # Keeps the layer seeds of neighbouring run seeds apart.
RANDOM_VALUES = 2**16  # Number of values of the random bits drawn for each input.


class Microbatch:
    """The microbatch that a step is computing, of `count` in a batch."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.number: int | tf.Tensor = 0

    @contextlib.contextmanager
    def select(self, number: tf.Tensor) -> Iterator[None]:
        """Returns a context in which a graph for microbatch `number`, int32, is traced."""
        self.number = number
        try:
            yield
        finally:
            self.number = 0


class DropoutMasks(tf.__internal__.tracking.AutoTrackable):
    """Draws the masks of one dropout layer; replaces the layer's random generator.

    TensorFlow's kernels hide the random state of ordinary dropout, so a resumed run would draw
    other masks. These masks depend only on values that a checkpoint holds: the layer's seed, the
    number of steps done and the current microbatch. `counted`: see `draw_dropout`. The
    step is tracked, because SavedModels hold calls in training too.
    """

    _rng_type = "legacy_stateful"  # What the layer's config gets: a loaded layer draws its own.

    def __init__(
        self, seed: int, step: tf.Variable, microbatch: Microbatch, counted: bool = False
    ) -> None:
        self.seed, self.step, self.microbatch, self.counted = seed, step, microbatch, counted

    def _maybe_init(self) -> None:
        """Does nothing; tf_keras layers call it before the first use."""

    def dropout(self, inputs: tf.Tensor, rate: float, noise_shape: Any = None) -> tf.Tensor:
        """Sets a proportion `rate` of `inputs` to zero and scales up the others."""
        context = tf.distribute.get_replica_context()
        count = tf.cast(self.step, tf.int32)
        if self.microbatch.count > 1:
            count = count * self.microbatch.count + self.microbatch.number
        draw = count * context.num_replicas_in_sync + context.replica_id_in_sync_group
        seeds = tf.stack([self.seed, draw])
        return draw_dropout(inputs, rate, noise_shape, seeds, self.counted)


def draw_dropout(
    inputs: tf.Tensor, rate: float, shape: Any, seed: tf.Tensor, counted: bool = False
) -> tf.Tensor:
    """Applies dropout with 16 random bits a value, half as many as TensorFlow draws.

    `rate` is rounded to a multiple of 1/65,536, and the scale uses the rounded rate, so the mean is
    preserved. The mask has the int32 `shape`, broadcast to that of `inputs`, or that of `inputs` if
    it is None. It comes from the int32 `[2]` `seed`. `counted` takes it as key and counter of
    Philox (Salmon et al. 2011), which TensorFlow otherwise derives from it: for XLA that is a third
    of a BERT-base step.
    """
    threshold = min(round(rate * RANDOM_VALUES), RANDOM_VALUES - 1)
    if threshold == 0:
        return inputs
    draw = _counted if counted else _derived
    if shape is None and any(size is not None and size % 2 == 0 for size in inputs.shape):
        # Of an even number none is left over, which saves a slice.
        pairs = draw([tf.size(inputs) // 2], seed)
        bits = tf.reshape(tf.bitcast(pairs, tf.int16), tf.shape(inputs))
    else:
        bits = _draw_bits(draw, tf.shape(inputs) if shape is None else shape, seed)
    mask = bits >= tf.constant(threshold - RANDOM_VALUES // 2, tf.int16)
    scale = RANDOM_VALUES / (RANDOM_VALUES - threshold)
    return gradients.keep(inputs, mask, scale)


def _draw_bits(draw: Callable[..., tf.Tensor], shape: Any, seed: tf.Tensor) -> tf.Tensor:
    """Random int16 of a shape, which are drawn in pairs."""
    count = tf.reduce_prod(shape)
    pairs = draw([(count + 1) // 2], seed)
    return tf.reshape(tf.reshape(tf.bitcast(pairs, tf.int16), [-1])[:count], shape)


def _derived(shape: Any, seed: tf.Tensor) -> tf.Tensor:
    return tf.random.stateless_uniform(shape, seed, None, None, tf.int32)


def _counted(shape: Any, seed: tf.Tensor) -> tf.Tensor:
    key, draw = tf.unstack(tf.cast(seed, tf.uint64))
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=shape,
        key=[key],
        counter=tf.stack([tf.zeros_like(draw), draw]),  # The first counts the values of a draw.
        alg=tf.random.Algorithm.PHILOX.value,
        dtype=tf.int32,
    )


def seed_dropout(
    model: tf_keras.Model,
    seed: int,
    step: tf.Variable,
    microbatch: Microbatch | None = None,
    counted: bool = False,
) -> None:
    """Sets the `DropoutMasks` of all dropout layers of a model, from the run's seed.

    `step` is a variable with the number of steps done, for example an optimizer's `iterations`.
    """
    microbatch = microbatch or Microbatch()
    layers = [layer for layer in model.submodules if isinstance(layer, tf_keras.layers.Dropout)]
    for number, layer in enumerate(layers):
        layer_seed = (seed * LAYER_STRIDE + number) % 2**31
        _set_masks(layer, DropoutMasks(layer_seed, step, microbatch, counted))


@tf.__internal__.tracking.no_automatic_dependency_tracking  # Checkpoints do not hold the masks.
def _set_masks(layer: tf_keras.layers.Dropout, masks: DropoutMasks) -> None:
    layer._random_generator = masks
