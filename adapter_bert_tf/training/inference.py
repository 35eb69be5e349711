"""Batched inference on any number of replicas."""

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.ops import compiled
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.errors import Overflowed
from adapter_bert_tf.training.device.compilation import CompiledStep
from adapter_bert_tf.training.device.strategy import distribute, is_multi_worker

# Traced steps by model and input shapes; weak, so that they are freed with the model.
_steps: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def predict(
    model: tf_keras.Model, batches: Callable[[HostShard], tf.data.Dataset]
) -> Iterator[np.ndarray]:
    """Runs a compiled model on batches, a function from a `HostShard` to a dataset of inputs.

    The first call traces a graph. Later calls reuse it with the current weights, and do not see a
    change of the layers. Yields the outputs of one global batch, float32 `[batch, ...]`, in the
    order of its rows, the same on every host. Raises `InputError` if float16 cannot hold a value of
    the computation.
    """
    step = None
    data = distribute(model.distribute_strategy, batches)
    for inputs in data:
        step = step or _step(model, data.element_spec)
        outputs = step(inputs).numpy()
        if model.compute_dtype == "float16" and not np.isfinite(outputs).all():
            raise Overflowed(
                "A value of this model exceeds float16's 65,504, so an answer is not a number. Use "
                "precision='float32', or 'bfloat16' on a card that has it.",
                "precision='float32'",
            )
        yield outputs


def _step(model: tf_keras.Model, spec: Any) -> Callable[..., Any]:
    """The traced step for batches of the type `spec`: one graph for all lengths.

    By itself a `tf.function` is traced for the first shapes exactly, then for all others, and the
    graphs differ in the last digits.
    """
    is_compiled = model.jit_compile and model.distribute_strategy.num_replicas_in_sync == 1
    tensors = tf.nest.flatten(spec, expand_composites=True)
    key = (model.jit_compile, *(tuple(tensor.shape) for tensor in tensors))
    steps = _steps.setdefault(model, {})
    if key not in steps:
        steps[key] = (_compiled_step if is_compiled else _new_step)(model, spec)
    return steps[key]


def _compiled_step(model: tf_keras.Model, spec: Any) -> Callable[..., Any]:
    """The step on one device that XLA compiles, once for each length."""
    model_of: Callable[[], Any] = weakref.ref(model)
    size = sum(variable.shape.num_elements() for variable in model.variables)

    def run(inputs: Any) -> Any:
        forward = functools.partial(model_of(), training=False)
        return model_of().distribute_strategy.run(forward, args=(inputs,))

    return CompiledStep(run, "evaluation step", size, spec)


def _new_step(model: tf_keras.Model, spec: Any) -> Callable[..., Any]:
    strategy = model.distribute_strategy
    model_of: Callable[[], Any] = weakref.ref(model)
    forward = compiled(
        lambda inputs: model_of()(inputs, training=False),
        jit_compile=model.jit_compile,
        reduce_retracing=True,
    )

    def step(inputs):
        outputs = strategy.run(forward, args=(inputs,))
        if is_multi_worker(strategy):
            return strategy.gather(outputs, axis=0)
        return tf.concat(strategy.experimental_local_results(outputs), 0)

    return compiled(step, input_signature=[spec])
