"""adapter-bert's optimizer and learning rate schedule, based on Model Garden's."""

import collections
import re
from typing import Any

import tensorflow as tf
import tf_keras
from official.nlp import optimization

LARGEST_STACKED = 2**17  # Values of a variable; stacking larger ones would cost memory.
RATES = "rates"  # Key of the state of one step.
MOST_STEPS = 2**24  # Which float32 counts.
LARGEST_UPDATE = 2.0  # Usual updates are around 1; docs/defaults.md has the reason for 2.
# Patterns of variable names. A fusion's values stay near the identity, and vectors that multiply
# start at one: decay would pull them to zero.
NO_WEIGHT_DECAY = ("layer_norm", "bias", "fusion/.*/value_kernel", "adapters/.*/scale")

# Names of variables that belong to one of several tasks.
TASK_VARIABLE = re.compile("(^|/)tasks/[^/]+/(adapters|head|hypernetwork|pals)/")


class Schedule(optimization.WarmUp):
    """Linear warmup over a proportion of the steps, then linear decay to zero.

    Steps count from 1. Model Garden's `WarmUp` counts from 0, so its first step has a learning rate
    of zero.
    """

    def __init__(self, learning_rate, steps, warmup_proportion=0.1):
        decay = tf_keras.optimizers.schedules.PolynomialDecay(learning_rate, max(steps, 1), 0.0)
        warmup_steps = max(int(steps * warmup_proportion), 1)
        super().__init__(learning_rate, decay, warmup_steps)
        self.config = {
            "learning_rate": learning_rate,
            "steps": steps,
            "warmup_proportion": warmup_proportion,
        }

    def __call__(self, step):
        return super().__call__(tf.cast(step, tf.float32) + 1)

    def get_config(self):
        return dict(self.config)


# Keyword arguments of `BertAdam` by name of the optimizer; docs/defaults.md compares them.
OPTIMIZERS = {
    "adamw": {"bias_correction": True, "clip_update": True},
    "adamw_unclipped": {"bias_correction": True, "clip_update": False},
    "adapter_bert": {"bias_correction": False, "clip_update": False},
}


class BertAdam(optimization.AdamWeightDecay):
    """Adam with decoupled weight decay and gradients clipped to a global norm of 1.

    LayerNorm, biases, the values of a fusion and the vectors of (IA)^3 do not decay. Gradients are
    clipped after they are summed over replicas. Variables of one of several tasks do not change if
    a batch has no row of that task: their gradient is zero, and neither decay nor moments apply.

    Args:
      learning_rate: number or schedule.
      bias_correction: whether to correct the moments for their start at zero (Kingma and Ba 2015).
        adapter-bert, like the original BERT, does not.
      clip_update: whether to lower the learning rate of a variable so that the root mean square of
        g / sqrt(v) is at most `LARGEST_UPDATE`, as in StableAdamW (Wortsman et al. 2023, section
        3.5; their limit is 1). v averages over 1,000 steps; without clipping, a sudden large
        gradient changes the variable by many learning rates. Sparse gradients are not clipped.
      weight_decay: proportion of each weight subtracted by a step, times the learning rate.
    """

    def __init__(
        self,
        learning_rate,
        bias_correction=True,
        clip_update=True,
        weight_decay=0.01,
        name="BertAdam",
        **kwargs,
    ):
        super().__init__(
            learning_rate,
            epsilon=1e-6,
            weight_decay_rate=weight_decay,
            gradient_clip_norm=0.0,
            global_clipnorm=1.0,
            exclude_from_weight_decay=list(NO_WEIGHT_DECAY),
            name=name,
            **kwargs,
        )
        # TPUs have no int64 and GPUs no int32 variables; float32 is exact up to `MOST_STEPS`.
        self.iterations = self.add_weight(
            "iter", shape=[], trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
        )
        self.bias_correction = bias_correction
        self.clip_update = clip_update

    def build(self, variables):
        """Creates the moments now; creating them in the first step doubles its tracing."""
        self._create_all_weights(variables)

    def _distributed_apply(self, distribution, grads_and_vars, apply_state, name):
        pairs = list(grads_and_vars)
        if self.clip_update and distribution.num_replicas_in_sync == 1:
            apply_state = {**apply_state, RATES: self._bounded_rates(pairs, apply_state)}
        return super()._distributed_apply(distribution, pairs, apply_state, name)

    def _prepare_local(self, var_device, var_dtype, apply_state):
        super()._prepare_local(var_device, var_dtype, apply_state)
        if not self.bias_correction:
            zero, state = tf.zeros([], var_dtype), apply_state[(var_device, var_dtype)]
            # Dense updates are corrected by the powers; sparse ones, of word embeddings, by `lr`.
            state |= {"beta_1_power": zero, "beta_2_power": zero, "lr": state["lr_t"]}

    def _resource_apply_dense(self, grad, var, apply_state=None):
        key = (var.device, var.dtype.base_dtype)
        state = dict(apply_state[key])
        if self.clip_update:
            rate = apply_state.get(RATES, {}).get(var.ref())
            if rate is None:
                rate = self._bounded_rate(grad, self.get_slot(var, "v"), state)
            state["lr_t"] = rate
        if TASK_VARIABLE.search(var.name):
            state["lr_t"] *= tf.cast(tf.reduce_any(tf.not_equal(grad, 0.0)), tf.float32)
        return super()._resource_apply_dense(grad, var, dict(apply_state) | {key: state})

    def _bounded_rates(self, grads_and_vars, apply_state):
        """Dict from references of variables to their learning rates.

        Small variables of one shape are computed together: a graph with the operations for each
        variable takes twice as long to trace and to optimize.
        """
        groups = collections.defaultdict(list)
        for grad, var in grads_and_vars:
            if isinstance(grad, tf.Tensor) and var.shape.num_elements() <= LARGEST_STACKED:
                key = (var.device, var.dtype.base_dtype)
                groups[key, tuple(var.shape)].append((grad, var))
        rates: dict[Any, tf.Tensor] = {}
        for (key, _), pairs in groups.items():
            grads, variables = zip(*pairs, strict=True)
            v = tf.stack([self.get_slot(var, "v") for var in variables])
            group = self._bounded_rate(tf.stack(grads), v, apply_state[key], stacked=True)
            rates |= zip((var.ref() for var in variables), tf.unstack(group), strict=True)
        return rates

    def _bounded_rate(self, grad, v, state, stacked=False):
        """The learning rate, lowered to bound the root mean square of g / sqrt(v), this step's v.

        `stacked`: whether `grad` and `v` have a leading axis, of variables.
        """
        square = tf.square(grad)
        v = state["beta_2_t"] * v + state["one_minus_beta_2_t"] * square
        v /= 1 - state["beta_2_power"]
        axes = list(range(1, grad.shape.rank)) if stacked else None
        size = tf.sqrt(tf.reduce_mean(square / tf.maximum(v, self.epsilon**2), axes))
        return state["lr_t"] / tf.maximum(1.0, size / LARGEST_UPDATE)

    def get_config(self):
        return {
            "learning_rate": self._serialize_hyperparameter("learning_rate"),
            "bias_correction": self.bias_correction,
            "clip_update": self.clip_update,
            "weight_decay": self.weight_decay_rate,
            "name": self._name,
        }
