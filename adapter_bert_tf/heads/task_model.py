"""What the models of all tasks have: the adapted encoder, and dense heads."""

import numbers
from collections.abc import Collection
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.methods.score_dropout import ScoreDropout
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.adapters.variable_specs import VariableSpec
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.heads.specs import head_specs
from adapter_bert_tf.sanitize import preview


def new_head(hidden_size: int, outputs: int, name: str = "head") -> tf_keras.layers.Dense:
    """A float32 dense layer on hidden states, built. Raises `InputError` without outputs."""
    if not isinstance(outputs, numbers.Integral) or outputs < 1:
        raise InputError(f"A head has 1 or more outputs, one a label. Received: {preview(outputs)}")
    layer = tf_keras.layers.Dense(
        outputs,
        name=name,
        dtype=tf.float32,
        kernel_initializer=tf_keras.initializers.TruncatedNormal(stddev=0.02),
    )
    # Not by a call on an encoder's inputs, which would tie it to a shared encoder for good.
    with tf.name_scope(layer.name):
        layer.build((None, hidden_size))
    return layer


def train_only(model: tf_keras.Model, trained: Collection[tf.Variable]) -> None:
    """Freezes all other variables, layer by layer, as in tf_keras; those of a leaf go together."""
    trained_refs = {variable.ref() for variable in trained}
    layers = [module for module in model.submodules if isinstance(module, tf_keras.layers.Layer)]
    for layer in layers:
        inner = (sub for sub in layer.submodules if isinstance(sub, tf_keras.layers.Layer))
        if layer.variables and not any(sub.variables for sub in inner):
            layer.trainable = layer.variables[0].ref() in trained_refs


class EncoderModel(tf_keras.Model):
    """An encoder, `AdapterBertEncoder` or `TaskEncoder`, and what follows it."""

    unused: tuple[str, ...] = ()  # Groups of variables that no output depends on.

    def __init__(self, encoder: AdapterBertEncoder | TaskEncoder, **kwargs: Any) -> None:
        # Or the skip connection would round the known output of frozen layers, a float input.
        super().__init__(autocast=False, **kwargs)
        self.encoder = encoder

    def training_loss(self) -> Loss:
        """The loss to train with, a function of labels and outputs."""
        raise NotImplementedError

    def head_layers(self) -> dict[str, tf_keras.layers.Dense]:
        """Dict from the common prefix of its variables to each head."""
        raise NotImplementedError

    def named_variables(self) -> dict[str, tf.Variable]:
        """The encoder's named variables and those of the head or heads."""
        named = dict(self.encoder.named_variables())
        for name, layer in self.head_layers().items():
            named |= {f"{name}/kernel": layer.kernel, f"{name}/bias": layer.bias}
        return named

    def specs(self) -> dict[str, VariableSpec]:
        """Dict from the names of `named_variables` to their `VariableSpec`s."""
        specs = dict(self.encoder.specs())
        for name, layer in self.head_layers().items():
            specs |= head_specs(self.encoder.config["hidden_size"], layer.units, name)
        return specs

    def make_train_function(self, force: bool = False) -> Any:
        """The step of `fit`. Raises `InputError` before it is traced."""
        for layer in self.submodules:
            if isinstance(layer, ScoreDropout):
                layer.require_step()
        return super().make_train_function(force)

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """As tf_keras; warns that `load_model` unfreezes all variables of a SavedModel."""
        if not str(filepath).endswith(".keras") and self._trained() is not None:
            logging.warning(
                f"load_model will train all that it loads from {str(filepath)!r}. Save FILE.keras, "
                "which keeps frozen variables, or call select_trained after loading."
            )
        super().save(filepath, *args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "encoder": tf_keras.utils.serialize_keras_object(self.encoder),
            "trained": self._trained(),
        }

    def _trained(self) -> list[str] | None:
        """Names of what is trained, for `from_config`; None if nothing is frozen."""
        trained = {variable.ref() for variable in self.trainable_variables}
        named = self.named_variables()
        names = [name for name, variable in named.items() if variable.ref() in trained]
        return names if len(names) < len(named) else None

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "EncoderModel":
        encoder = tf_keras.utils.deserialize_keras_object(config.pop("encoder"))
        trained = config.pop("trained", None)
        model = cls(encoder, **config)
        if trained is not None:  # Else what loads a model would train the whole base.
            named = model.named_variables()
            train_only(model, [named[name] for name in trained])
        return model


class TaskModel(EncoderModel):
    """An encoder and a head with `outputs`; the `call` of a subclass connects them."""

    def __init__(
        self, encoder: AdapterBertEncoder | TaskEncoder, outputs: int, **kwargs: Any
    ) -> None:
        super().__init__(encoder, **kwargs)
        self.head = new_head(encoder.config["hidden_size"], outputs)
        self.built = True

    def head_layers(self) -> dict[str, tf_keras.layers.Dense]:
        """The head, with `head/kernel` and `head/bias`."""
        return {"head": self.head}
