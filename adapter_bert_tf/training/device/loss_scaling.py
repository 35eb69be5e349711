"""Loss scaling of float16 training (Micikevicius et al. 2018, section 3.2), by tf_keras.

float16 has no numbers below 6e-8 and none above 65,504. The loss is multiplied by a power of two,
so that small gradients do not vanish, and the gradients are divided by it. A step whose gradients
are not finite is skipped, and halves the scale; 2,000 steps without one double it. A skipped step
changes neither weights nor moments, but counts as a step: the schedule and the data go on.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.training.optimizer import BertAdam

Gradients = Callable[[Any, Callable[[tf.Tensor], tf.Tensor]], tuple[tf.Tensor, list[Any]]]

FIRST_SCALE = 2.0**15
LOWEST_SCALE = 1.0  # tf_keras does not go lower.


def needs_loss_scaling(model: tf_keras.Model) -> bool:
    """Whether a model computes in float16; tf_keras then insists on such an optimizer."""
    return bool(model.dtype_policy.name == "mixed_float16")


def with_loss_scaling(optimizer: BertAdam) -> Any:
    """Returns tf_keras' `LossScaleOptimizer` of a built optimizer, which counts skipped steps.

    Its checkpoints have the scale, the steps since it changed, and `skipped_steps`.
    """
    scaled = tf_keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale=FIRST_SCALE)
    scaled.skipped_steps = optimizer.add_weight(
        "skipped_steps",
        shape=[],
        trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )
    return scaled


def make_scaled_step(
    model: tf_keras.Model, gradients: Gradients
) -> Callable[[Any], dict[str, tf.Tensor]]:
    """Returns the training step of a model whose optimizer is `with_loss_scaling`.

    The loss that it reports is the mean over all steps with a finite loss; it is NaN from the first
    step on that is not finite at the lowest scale, where no smaller scale can help.

    Args:
      model: compiled, in the scope of its strategy.
      gradients: function of a batch and of the scaling of a loss that returns the loss, summed over
        replicas it is the mean of the batch, and the gradients of the scaled loss.
    """
    return functools.partial(_scaled_step, model, gradients, tf_keras.metrics.Mean("loss"))


def _scaled_step(
    model: Any, gradients: Gradients, mean_loss: tf_keras.metrics.Mean, data: Any
) -> dict[str, tf.Tensor]:
    optimizer, variables = model.optimizer, model.trainable_variables
    scale = tf.identity(optimizer.loss_scale)
    loss, scaled_gradients = gradients(data, optimizer.get_scaled_loss)
    unscaled = optimizer.get_unscaled_gradients(scaled_gradients)
    optimizer.apply_gradients(zip(unscaled, variables, strict=True))

    # tf_keras says no more of a skipped step: it resets its counter and does not raise the scale.
    skipped = tf.equal(optimizer.dynamic_counter, 0) & (optimizer.loss_scale <= scale)
    optimizer.skipped_steps.assign_add(tf.cast(skipped, tf.float32))

    is_finite = tf.math.is_finite(loss)
    diverged = tf.where(skipped, scale <= LOWEST_SCALE, ~is_finite)
    loss *= model.distribute_strategy.num_replicas_in_sync
    loss = tf.where(diverged, float("nan"), tf.where(is_finite, loss, 0.0))
    mean_loss.update_state(loss, sample_weight=tf.cast(is_finite | diverged, tf.float32))
    # With the loss alone, `fit` would report tf_keras' own mean at the end, which one NaN spoils.
    return {"loss": mean_loss.result(), "loss_scale": scale}
