"""Gradient accumulation: computes a large batch in microbatches, to save memory."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.training.device.loss_scaling import make_scaled_step, needs_loss_scaling
from adapter_bert_tf.training.dropout import Microbatch


def make_train_step(
    model: tf_keras.Model, microbatch: Microbatch
) -> Callable[[Any], dict[str, tf.Tensor]]:
    """Returns the training step for `fit`; with one microbatch, the compiled model's own.

    All microbatches have the same size, so the mean of their gradients is the gradient of the
    batch: without dropout, both steps change the weights alike.
    """
    gradients = functools.partial(_gradients, model)
    if microbatch.count > 1:
        gradients = functools.partial(_accumulated_gradients, model, microbatch)
    if needs_loss_scaling(model):
        step = make_scaled_step(model, gradients)
    elif microbatch.count > 1:
        step = functools.partial(_accumulating_step, model, gradients)
    else:
        step = functools.partial(type(model).train_step, model)
    # AutoGraph would parse the source of every layer, which takes longer than tracing, for nothing.
    return tf.autograph.experimental.do_not_convert(step)


def _accumulating_step(model, gradients, data):
    _, total = gradients(data, lambda loss: loss)
    model.optimizer.apply_gradients(zip(total, model.trainable_variables, strict=True))
    return {metric.name: metric.result() for metric in model.metrics}


def _gradients(model, data, scale):
    """The loss of a batch, and the gradients of the loss that `scale` returns for it."""
    inputs, labels = data
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        loss = model.compute_loss(inputs, labels, outputs)
        scaled = scale(loss)
    return loss, tape.gradient(scaled, model.trainable_variables)


def _accumulated_gradients(model, microbatch, data, scale):
    """As `_gradients`, in `microbatch.count` parts."""
    # From `[batch, ...]` to `[count, batch / count, ...]`.
    batches = tf.nest.map_structure(
        lambda rows: tf.reshape(rows, tf.concat([[microbatch.count, -1], tf.shape(rows)[1:]], 0)),
        data,
    )
    variables = model.trainable_variables

    def accumulate(number, total_loss, sums):
        inputs, labels = tf.nest.map_structure(lambda rows: rows[number], batches)
        with microbatch.select(number), tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = model.compute_loss(inputs, labels, outputs) / microbatch.count
            scaled = scale(loss)
        gradients = tape.gradient(scaled, variables, unconnected_gradients="zero")
        # The gradient of an embedding is sparse, and the loop variable is dense.
        return (
            number + 1,
            total_loss + loss,
            [
                total + tf.convert_to_tensor(gradient)
                for total, gradient in zip(sums, gradients, strict=True)
            ],
        )

    zeros = [tf.zeros_like(variable) for variable in variables]
    _, loss, gradients = tf.while_loop(  # Parallel iterations would need the whole batch's memory.
        lambda number, *_: number < microbatch.count,
        accumulate,
        [0, 0.0, zeros],
        parallel_iterations=1,
    )
    return loss, gradients
