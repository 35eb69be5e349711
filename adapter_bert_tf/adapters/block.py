"""The transformer block of the base, with room for adapters.

Only this file uses private attributes of Model Garden's layers (2.20). Calls have no `super()`.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers

from adapter_bert_tf.adapters import gradients
from adapter_bert_tf.adapters.attention import Attention
from adapter_bert_tf.adapters.base_layers import (
    FLOAT32_INPUTS,
    Activation,
    create_variables,
    dense_variables,
    new_norm,
    norm_variables,
    replace_dense,
)
from adapter_bert_tf.adapters.modules import (
    PROJECTIONS,
    AdapterModule,
    DenseChange,
    Projection,
    Sublayer,
    projection_output,
)
from adapter_bert_tf.adapters.ops import Range, chosen
from adapter_bert_tf.adapters.variable_specs import norm_after
from adapter_bert_tf.errors import Unsupported


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class AdapterEncoderBlock(layers.TransformerEncoderBlock):
    """A post-LN transformer block with room for an adapter after each sublayer.

    Houlsby et al. 2019, Figure 2: the adapter comes after the sublayer's projection (and dropout)
    and before the skip connection and the LayerNorm. The paper defines no `norm_first=True`, which
    raises `InputError`. `product_dtype` is that of all dense layers, as in `Attention`.
    """

    def __init__(
        self,
        *args: Any,
        norm_first: bool = False,
        product_dtype: str | None = None,
        **kwargs: Any,
    ) -> None:
        if norm_first:
            raise Unsupported(
                "Adapters are defined for BERT's post-LN blocks (Houlsby et al. 2019, Figure 2). "
                "Received: norm_first=True"
            )
        super().__init__(*args, norm_first=False, **FLOAT32_INPUTS, **kwargs)
        self.product_dtype = product_dtype

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        config = self._attention_layer.get_config()
        shapes = ("query_shape", "key_shape", "value_shape")  # Of a built layer; this is not one.
        self._attention_layer: Any = Attention(
            **{k: v for k, v in config.items() if k not in shapes}, product_dtype=self.product_dtype
        )
        replace_dense(self, ("_intermediate_dense", "_output_dense"), self.product_dtype)
        self._attention_layer_norm: Any = new_norm("self_attention_layer_norm", self._norm_epsilon)
        self._attention_layer_norm_kv: Any = self._attention_layer_norm
        self._output_layer_norm: Any = new_norm("output_layer_norm", self._norm_epsilon)
        plain = self._intermediate_activation_layer
        # float32 in every compute dtype: Model Garden makes an exception only for bfloat16.
        self._intermediate_activation_layer: Any = Activation(
            plain.activation, name=plain.name, dtype=tf.float32
        )

    def create_variables(self, shape: Sequence[int | None]) -> None:
        """Creates its variables for inputs of a shape, in the order of a call."""
        self.build(tf.TensorShape(shape))
        self._attention_layer.create_variables(shape)
        create_variables(self._intermediate_dense, shape)
        create_variables(self._output_dense, [*shape[:-1], self._inner_dim])
        create_variables(self._attention_layer_norm, shape)
        create_variables(self._output_layer_norm, shape)

    def call(
        self,
        inputs: tuple[tf.Tensor, tf.Tensor],
        output_range: Range = None,
        module: AdapterModule | None = None,
        layer: int = 0,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Runs the block; returns float32 `[batch, places or seq, hidden]`.

        Args:
          inputs: pair of the block's input `[batch, seq, hidden]` and an attention mask
            `[batch, 1 or seq, seq]`, 1 for what may be attended to.
          output_range: which positions to compute, see `chosen`.
          module: `AdapterModule` of this call; None for the bare base.
          layer: index of this block in the encoder.
        """
        block_input, mask = inputs
        module = module or AdapterModule()
        attention_norm = module.norm(norm_after(layer, "attention"), self._attention_layer_norm)
        output_norm = module.norm(norm_after(layer, "feed_forward"), self._output_layer_norm)
        computed = None if module.reads_all_positions else output_range
        x = chosen(block_input, computed)
        adapt = functools.partial(_adapt, module, layer, mask)
        in_training = gradients.IN_TRAINING if training is True else {}
        shared = (block_input, mask, in_training, computed)
        changes = module.dense_changes(layer)

        def project(name: str, dense: Any, x: tf.Tensor) -> tf.Tensor:
            if name in changes:
                return dense.changed(x, changes[name], training=training)
            return adapt(name, x, dense(x))

        changed = _changed_attention(module, layer)
        if changed - changes.keys():
            output = self._attention_layer.call_adapted(x, block_input, mask, adapt)
        else:
            is_first = isinstance(computed, int) and computed == 1
            own = {name: changes[name] for name in changed}
            output = self._attend(x, block_input, mask, own, is_first, training)
        output = self._attention_dropout(output)
        sublayer = Sublayer(layer, "attention", output, x, attention_norm, *shared)
        x = attention_norm(tf.add_n([x, module.adapt_sublayer(sublayer)]))

        intermediate = project("intermediate", self._intermediate_dense, x)
        activation = self._intermediate_activation_layer(intermediate)
        activation = adapt("activation", intermediate, activation)
        output = project("output", self._output_dense, activation)
        output = self._output_dropout(output)
        sublayer = Sublayer(layer, "feed_forward", output, x, output_norm, *shared)
        x = output_norm(tf.add_n([x, module.adapt_sublayer(sublayer)]))
        return x if computed is output_range else chosen(x, output_range)

    def _attend(
        self,
        x: tf.Tensor,
        block_input: tf.Tensor,
        mask: tf.Tensor,
        changes: Mapping[str, DenseChange],
        is_first: bool,
        training: bool | None,
    ) -> tf.Tensor:
        """Attention by the fastest path; `is_first`: only the first position has a query."""
        attention = self._attention_layer
        has_dropout = any(changes[n].dropout for n in changes.keys() & {"key", "value"})
        if is_first and not has_dropout:
            return attention.call_for_first(x, block_input, mask, changes, training)
        if changes:
            return attention.call_changed(x, block_input, mask, changes, training)
        return attention(x, block_input, attention_mask=mask)

    def named_variables(self, prefix: str) -> dict[str, tf.Variable]:
        """Dict from the variable names of Google's checkpoints, below `prefix`, to variables."""
        attention = self._attention_layer
        return {
            **dense_variables(f"{prefix}/attention/self/query", attention._query_dense),
            **dense_variables(f"{prefix}/attention/self/key", attention._key_dense),
            **dense_variables(f"{prefix}/attention/self/value", attention._value_dense),
            **dense_variables(f"{prefix}/attention/output/dense", attention._output_dense),
            **norm_variables(f"{prefix}/attention/output/LayerNorm", self._attention_layer_norm),
            **dense_variables(f"{prefix}/intermediate/dense", self._intermediate_dense),
            **dense_variables(f"{prefix}/output/dense", self._output_dense),
            **norm_variables(f"{prefix}/output/LayerNorm", self._output_layer_norm),
        }


def _adapt(
    module: AdapterModule, layer: int, mask: tf.Tensor, name: str, x: tf.Tensor, output: tf.Tensor
) -> tf.Tensor:
    """The output of a projection with the module's change; `x` is its input."""
    return projection_output(
        module, Projection(layer, name, tf.cast(x, output.dtype), output, mask)
    )


def _changed_attention(module: AdapterModule, layer: int) -> set[str]:
    """The projections of attention that change. Raises `ValueError` for unknown names."""
    names = set(module.projections(layer))
    if unknown := names - {name for known in PROJECTIONS.values() for name in known}:
        raise ValueError(f"Projections are {PROJECTIONS}. Received: {sorted(unknown)}")
    return names & set(PROJECTIONS["attention"])
