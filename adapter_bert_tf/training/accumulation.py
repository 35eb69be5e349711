"""Gradient accumulation: computes a large batch in microbatches, to save memory."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.training.dropout import Microbatch


def make_train_step(
    model: tf_keras.Model, microbatch: Microbatch
) -> Callable[[Any], dict[str, tf.Tensor]]:
    """Returns the training step for `fit`; with one microbatch, the compiled model's own.

    All microbatches have the same size, so the mean of their gradients is the gradient of the
    batch: without dropout, both steps change the weights alike.
    """
    step = functools.partial(type(model).train_step, model)
    if microbatch.count > 1:
        step = functools.partial(_accumulating_step, model, microbatch)
    # AutoGraph would parse the source of every layer, which takes longer than tracing, for nothing.
    return tf.autograph.experimental.do_not_convert(step)


def _accumulating_step(model, microbatch, data):
    # From `[batch, ...]` to `[count, batch / count, ...]`.
    batches = tf.nest.map_structure(
        lambda rows: tf.reshape(rows, tf.concat([[microbatch.count, -1], tf.shape(rows)[1:]], 0)),
        data,
    )
    variables = model.trainable_variables

    def accumulate(number, sums):
        inputs, labels = tf.nest.map_structure(lambda rows: rows[number], batches)
        with microbatch.select(number), tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = model.compute_loss(inputs, labels, outputs) / microbatch.count
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        # The gradient of an embedding is sparse, and the loop variable is dense.
        return number + 1, [
            total + tf.convert_to_tensor(gradient)
            for total, gradient in zip(sums, gradients, strict=True)
        ]

    zeros = [tf.zeros_like(variable) for variable in variables]
    _, gradients = tf.while_loop(  # Parallel iterations would need the memory of the whole batch.
        lambda number, _: number < microbatch.count, accumulate, [0, zeros], parallel_iterations=1
    )
    model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return {metric.name: metric.result() for metric in model.metrics}
