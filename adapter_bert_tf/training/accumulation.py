"""Gradient accumulation: a large batch, computed in parts, so that it needs the memory of one."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.training.dropout import Part


def train_step_of(model: tf_keras.Model, part: Part) -> Callable[[Any], dict[str, tf.Tensor]]:
    """The step of `fit`: the model's own, or one that computes the batch part by part.

    AutoGraph leaves it alone: it would read the source of every layer, to change nothing, and that
    takes longer than to trace them.

    The mean of the parts' gradients is that of the batch, as all parts are of one size; so with
    dropout off, a batch in parts moves the weights as the whole one does.

    Args:
      model: compiled.
      part: of how many a batch consists; says to dropout which is computed.
    """
    step = functools.partial(type(model).train_step, model)
    if part.count > 1:
        step = functools.partial(_step_in_parts, model, part)
    return tf.autograph.experimental.do_not_convert(step)


def _step_in_parts(model, part, data):
    grouped = tf.nest.map_structure(lambda rows: _grouped(rows, part.count), data)
    variables = model.trainable_variables

    def add_part(number, sums):
        inputs, labels = tf.nest.map_structure(lambda rows: rows[number], grouped)
        with part.at(number), tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = model.compute_loss(inputs, labels, outputs) / part.count
        # Sums must be dense, also of the rows of an embedding.
        found = tape.gradient(loss, variables, unconnected_gradients="zero")
        return number + 1, [
            total + tf.convert_to_tensor(one) for total, one in zip(sums, found, strict=True)
        ]

    zeros = [tf.zeros_like(variable) for variable in variables]
    _, gradients = tf.while_loop(  # One after the other: that is what saves the memory.
        lambda number, _: number < part.count, add_part, [0, zeros], parallel_iterations=1
    )
    model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return {metric.name: metric.result() for metric in model.metrics}


def _grouped(rows, count):
    """`[batch, ...]` as `[count, batch / count, ...]`."""
    return tf.reshape(rows, tf.concat([[count, -1], tf.shape(rows)[1:]], 0))
