"""adapter-bert's optimizer and schedule, from Model Garden's parts."""

import tensorflow as tf
import tf_keras
from official.nlp import optimization

NO_WEIGHT_DECAY = ("layer_norm", "bias")


class Schedule(optimization.WarmUp):
    """Linear warmup, then linear decay to zero; step k, from 1, uses position k.

    Model Garden's `WarmUp` counts from 0, which spends the first step on a learning rate of zero.

    Args:
      learning_rate: the peak.
      steps: number of training steps.
      warmup_proportion: share of the steps that warm up.
    """

    def __init__(self, learning_rate, steps, warmup_proportion=0.1):
        decay = tf_keras.optimizers.schedules.PolynomialDecay(learning_rate, max(steps, 1), 0.0)
        warmup_steps = max(int(steps * warmup_proportion), 1)
        super().__init__(learning_rate, decay, warmup_steps)
        self.config = {"learning_rate": learning_rate, "steps": steps,
                       "warmup_proportion": warmup_proportion}

    def __call__(self, step):
        return super().__call__(tf.cast(step, tf.int64) + 1)

    def get_config(self):
        return dict(self.config)


# `--optimizer`; docs/design.md says what we saw of them.
OPTIMIZERS = {
    "adamw": {"bias_correction": True, "beta_2": 0.999},
    # Slower and steadier: for a run that falls back to one class in the middle of training.
    "adamw_98": {"bias_correction": True, "beta_2": 0.98},
    "adapter_bert": {"bias_correction": False, "beta_2": 0.999},
}


class BertAdam(optimization.AdamWeightDecay):
    """Adam with decoupled weight decay 0.01 and gradients clipped to a global norm of 1.

    LayerNorm and biases do not decay. Clipping comes after the replicas' gradients are summed.

    Args:
      learning_rate: number or schedule.
      bias_correction: whether the moments are corrected for their start at zero (Kingma and Ba
        2015). adapter-bert, like the first BERT, does not.
      beta_2: decay of the second moment. 0.999 remembers 1,000 steps; 0.98 (RoBERTa's) remembers
        50, which bounds the step after a sudden large gradient.
    """

    def __init__(self, learning_rate, bias_correction=True, beta_2=0.999, name="BertAdam",
                 **kwargs):
        super().__init__(
            learning_rate, beta_2=beta_2, epsilon=1e-6, weight_decay_rate=0.01,
            gradient_clip_norm=0.0, global_clipnorm=1.0,
            exclude_from_weight_decay=list(NO_WEIGHT_DECAY), name=name, **kwargs,
        )
        self.bias_correction = bias_correction

    def _prepare_local(self, var_device, var_dtype, apply_state):
        super()._prepare_local(var_device, var_dtype, apply_state)
        if not self.bias_correction:
            zero = tf.zeros([], var_dtype)
            apply_state[(var_device, var_dtype)] |= {"beta_1_power": zero, "beta_2_power": zero}

    def get_config(self):
        return {"learning_rate": self._serialize_hyperparameter("learning_rate"),
                "bias_correction": self.bias_correction,
                "beta_2": self._serialize_hyperparameter("beta_2"), "name": self._name}
