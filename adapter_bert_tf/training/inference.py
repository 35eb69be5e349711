"""Predictions: the outputs of every row, once, whatever the number of replicas."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.training.strategy import distribute, one_of_several

# What was traced for a model, by what it depends on; a model that is gone takes it along.
_steps: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def predict(
    model: tf_keras.Model, batches: Callable[[HostShard], tf.data.Dataset]
) -> Iterator[np.ndarray]:
    """Runs a model over batches.

    The first call traces a graph, in seconds; later ones use it, with the weights of that moment
    but the layers of then.

    Args:
      model: `tf_keras.Model`, compiled.
      batches: function of a `Share` that returns a `tf.data.Dataset` of inputs, one element a local
        replica and batch.

    Yields:
      the outputs of one global batch, float32 array `[batch, ...]`, in the order of its rows; on
      every host those of all.
    """
    step = None
    for inputs in distribute(model.distribute_strategy, batches):
        step = step or _step(model, inputs)
        yield step(inputs).numpy()


def _step(model: tf_keras.Model, first: Any) -> Callable[..., Any]:
    """The traced step for batches of which this is the first.

    A function is traced for the shapes that it meets first and then, once, for all others, and the
    last digits of the two differ. So each first shape has its own, and the same batches give the
    same bytes, whatever was predicted before.
    """
    tensors = tf.nest.flatten(first, expand_composites=True)
    key = (model.jit_compile, *(tuple(tensor.shape) for tensor in tensors))
    steps = _steps.setdefault(model, {})
    if key not in steps:
        steps[key] = _new_step(model)
    return steps[key]


def _new_step(model: tf_keras.Model) -> Callable[..., Any]:
    strategy = model.distribute_strategy
    model_of: Callable[[], Any] = weakref.ref(model)
    forward = tf.function(
        lambda inputs: model_of()(inputs, training=False),
        jit_compile=model.jit_compile,
        reduce_retracing=True,
        autograph=False,
    )

    @tf.function(reduce_retracing=True, autograph=False)
    def step(inputs):
        outputs = strategy.run(forward, args=(inputs,))
        if one_of_several(strategy):
            return strategy.gather(outputs, axis=0)
        return tf.concat(strategy.experimental_local_results(outputs), 0)

    return step
