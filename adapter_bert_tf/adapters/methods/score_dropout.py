"""Dropout and temperature of the attention of a fusion, in training."""

from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.errors import InputError

HOTTEST = 50.0  # Temperature at the first step, if it falls; 1 at the end.


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class ScoreDropout(tf_keras.layers.Dropout):
    """Dropout on scores, which are then divided by a temperature that falls during training.

    It falls from 50 to 1 in `cooling_steps` equal steps. After them and outside training it is 1,
    so nothing of it has to be saved.
    """

    def __init__(self, rate: float, cooling_steps: int = 0, **kwargs: Any) -> None:
        super().__init__(rate, dtype=tf.float32, **kwargs)
        self.cooling_steps = cooling_steps

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """The input of the softmax, of the shape of the scores."""
        dropped = super().call(inputs, training=training)
        training = tf_keras.backend.learning_phase() if training is None else training
        if not self.cooling_steps or not training:
            return dropped
        self.require_step()
        return dropped / self.temperature(self._random_generator.step)

    def require_step(self) -> None:
        """Raises `InputError` if the temperature falls and the step is unknown."""
        if self.cooling_steps and getattr(self._random_generator, "step", None) is None:
            raise InputError(
                "cooling_steps needs to know the step. Train with training.loop.train, or call "
                "training.dropout.seed_dropout(model, seed, optimizer.iterations) before fit."
            )

    def temperature(self, step: tf.Variable | tf.Tensor | float) -> tf.Tensor:
        """The temperature at a step, counted from 0."""
        left = 1.0 - tf.cast(step, tf.float32) / self.cooling_steps
        return 1.0 + (HOTTEST - 1.0) * tf.maximum(left, 0.0)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"cooling_steps": self.cooling_steps}
