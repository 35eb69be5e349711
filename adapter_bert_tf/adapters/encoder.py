"""BERT with room for adapters.

It uses attributes that it inherits from Model Garden's encoder (tf-models-official 2.20);
`tests/adapters/encoder_test.py` fails if another version names them differently.

Code that runs in a call does not use `super()`: to resolve it, AutoGraph reads the variables of
every frame of the stack, which keeps them alive, including the user's trained models.
"""

import functools
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras
from official.nlp.modeling import networks

from adapter_bert_tf.adapters.base_layers import (
    FLOAT32_INPUTS,
    UnsetWeights,
    create_variables,
    dense_variables,
    new_norm,
    norm_variables,
)
from adapter_bert_tf.adapters.block import AdapterEncoderBlock
from adapter_bert_tf.adapters.modules import FROZEN_OUTPUT, AdapterModule
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, Range, on_vectors
from adapter_bert_tf.adapters.variable_specs import POOLER, VariableSpec, base_specs
from adapter_bert_tf.errors import InputError, Mismatch


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class AdapterBertEncoder(networks.BertEncoderV2):
    """Model Garden's `BertEncoderV2`, which takes an `AdapterModule` with each call.

    It holds the base only, at the object paths that Model Garden's checkpoints expect. The
    variables of a module are elsewhere, in a `TaskEncoder` for example.

    Args:
      vocab_size, hidden_size, num_layers, num_attention_heads, inner_dim, type_vocab_size: sizes.
      max_sequence_length: rows of the position table.
      activation: of the feed-forward sublayer, a name in `ACTIVATION_FUNCTIONS`.
      output_dropout, attention_dropout: rates.
      norm_epsilon: of every LayerNorm.
      initializer_range: standard deviation of the base's random weights.
      product_dtype: of the products with the kernels of its blocks, in forward and backward
        passes, such as `bfloat16`; None: the compute dtype.
      frozen_layers: number of lowest blocks without dropout and gradients in training; if there are
        any, the embeddings have neither as well.
      random_weights: whether to draw the weights; False if all of them are assigned later.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 768,
        num_layers: int = 12,
        num_attention_heads: int = 12,
        inner_dim: int = 3072,
        type_vocab_size: int = 2,
        max_sequence_length: int = 512,
        activation: str = "gelu",
        output_dropout: float = 0.1,
        attention_dropout: float = 0.1,
        norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        product_dtype: str | None = None,
        frozen_layers: int = 0,
        random_weights: bool = True,
        **kwargs: Any,
    ) -> None:
        if "adapter" in kwargs:
            raise InputError(
                "The encoder holds the base only. Adapters come from base.build_encoder(config), "
                "or new_encoder(sizes, config). Received: adapter="
            )
        sizes: dict[str, Any] = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "num_layers": num_layers,
            "num_attention_heads": num_attention_heads,
            "inner_dim": inner_dim,
            "type_vocab_size": type_vocab_size,
            "max_sequence_length": max_sequence_length,
            "output_dropout": output_dropout,
            "attention_dropout": attention_dropout,
        }
        new_initializer = tf_keras.initializers.TruncatedNormal if random_weights else UnsetWeights
        super().__init__(
            initializer=new_initializer(stddev=initializer_range),
            inner_activation=ACTIVATION_FUNCTIONS[activation],
            **sizes,
            **FLOAT32_INPUTS,
            **kwargs,
        )
        self.config: dict[str, Any] = sizes | {
            "activation": activation,
            "norm_epsilon": norm_epsilon,
            "initializer_range": initializer_range,
        }
        self.product_dtype = product_dtype
        self.frozen_layers = frozen_layers
        self._embedding_norm_layer = new_norm("embeddings/layer_norm", norm_epsilon)
        self._embedding_dropout = tf_keras.layers.Dropout(
            output_dropout, name="embedding_dropout", **FLOAT32_INPUTS
        )
        self._transformer_layers = [
            AdapterEncoderBlock(
                num_attention_heads=num_attention_heads,
                inner_dim=inner_dim,
                inner_activation=ACTIVATION_FUNCTIONS[activation],
                norm_epsilon=norm_epsilon,
                output_dropout=output_dropout,
                attention_dropout=attention_dropout,
                kernel_initializer=new_initializer(stddev=initializer_range),
                product_dtype=product_dtype,
                name=f"transformer/layer_{i}",
            )
            for i in range(num_layers)
        ]
        self._create_variables()

    def call(
        self,
        inputs: Mapping[str, tf.Tensor],
        output_range: Range = None,
        module: AdapterModule | None = None,
        frozen_layers: int | None = None,
    ) -> dict[str, tf.Tensor]:
        """Encodes a batch.

        Args:
          inputs: dict of int32 `[batch, seq]`: `input_word_ids`, `input_mask`, `input_type_ids`;
            a module may need more. `frozen_output`, float32 `[batch, seq, hidden]`: the result of
            the method of this name, if it is known already.
          output_range: how many leading positions the last block computes, or the numbers of
            these positions, int32 `[batch, places]`; None for all. The result is exact: 1 is enough
            for classification from [CLS], and the masked positions are for masked words.
          module: `AdapterModule` of this call; None for the bare base.
          frozen_layers: overrides that of the constructor in this call, unless None.

        Returns:
          dict with `sequence_output [batch, places or seq, hidden]` and
          `pooled_output [batch, hidden]`, of the first of these positions.
        """
        module = (module or AdapterModule()).for_call(inputs)
        mask = inputs["input_mask"][:, tf.newaxis, :]
        first = self.frozen_layers if frozen_layers is None else frozen_layers
        x = self._first_input(inputs, module, first)
        last = len(self.blocks) - 1
        for i, block in enumerate(self.blocks[first:], first):
            computed = output_range if i == last else None
            x = block((x, mask), output_range=computed, module=module, layer=i)
        return {"sequence_output": x, "pooled_output": self.pool(x, module)}

    def _first_input(
        self, inputs: Mapping[str, tf.Tensor], module: AdapterModule, frozen_layers: int
    ) -> tf.Tensor:
        """The input of the lowest block that is not frozen."""
        if FROZEN_OUTPUT in inputs:
            return inputs[FROZEN_OUTPUT]
        if frozen_layers:
            return self.frozen_output(inputs, module, frozen_layers)
        return self.embed(inputs, module)

    def frozen_output(
        self,
        inputs: Mapping[str, tf.Tensor],
        module: AdapterModule | None = None,
        frozen_layers: int | None = None,
    ) -> tf.Tensor:
        """The output of the frozen layers, without dropout, float32 `[batch, seq, hidden]`."""
        module, mask = module or AdapterModule(), inputs["input_mask"][:, tf.newaxis, :]
        count = self.frozen_layers if frozen_layers is None else frozen_layers
        x = self.embed(inputs, module, training=False)
        for i, block in enumerate(self.blocks[:count]):
            x = block((x, mask), module=module, layer=i, training=False)
        return tf.stop_gradient(x)

    def _create_variables(self) -> None:
        """Creates all variables, so that weights can be assigned.

        A call would do it as well, and takes twice as long. The order decides which random numbers
        the base's weights are.
        """
        shape = [None, None, self.config["hidden_size"]]
        with tf.name_scope(self.name):
            create_variables(self._embedding_layer, [None, None])
            create_variables(self._type_embedding_layer, [None, None])
            create_variables(self._position_embedding_layer, shape)
            create_variables(self._embedding_norm_layer, shape)
            for block in self.blocks:
                with tf.name_scope(block.name):
                    block.create_variables(shape)
            create_variables(self._pooler_layer, [None, self.config["hidden_size"]])
        self.built = True

    @property
    def blocks(self) -> list[AdapterEncoderBlock]:
        """The transformer blocks, from the lowest."""
        return self._transformer_layers

    def embed(
        self, inputs: Mapping[str, tf.Tensor], module: AdapterModule, training: bool | None = None
    ) -> tf.Tensor:
        """The first block's input, float32 `[batch, seq, hidden]`."""
        words = inputs["input_word_ids"]
        length, positions = words.shape[-1], self.config["max_sequence_length"]
        if length is not None and length > positions:
            raise Mismatch(
                f"The base has positions for {positions} word pieces. Received: texts of {length}; "
                f"make them with abt.TextEncoder(vocabulary, {positions}), or shorter."
            )
        x = self._get_embeddings(words, inputs["input_type_ids"], None, None, None)
        norm = module.norm("bert/embeddings/LayerNorm", self._embedding_norm_layer)
        return module.adapt_embeddings(self._embedding_dropout(norm(x), training=training))

    def pool(self, x: tf.Tensor, module: AdapterModule) -> tf.Tensor:
        """The pooler's output for [CLS], `[batch, hidden]`, from the last block's output."""
        pooler = module.pooler(functools.partial(on_vectors, self._pooler_layer))
        return pooler(x[:, 0])

    def base_variables(self) -> dict[str, tf.Variable]:
        """Dict from the variable names of Google's checkpoints to the base's variables."""
        (positions,) = self._position_embedding_layer.weights
        named = {
            "bert/embeddings/word_embeddings": self._embedding_layer.embeddings,
            "bert/embeddings/position_embeddings": positions,
            "bert/embeddings/token_type_embeddings": self._type_embedding_layer.embeddings,
            **norm_variables("bert/embeddings/LayerNorm", self._embedding_norm_layer),
        }
        for i, block in enumerate(self.blocks):
            named |= block.named_variables(f"bert/encoder/layer_{i}")
        return named | dense_variables(POOLER, self._pooler_layer)

    def module(self) -> AdapterModule:
        """The module of its calls, which leaves the base as it is; a `TaskEncoder` has others."""
        return AdapterModule()

    def named_variables(self) -> dict[str, tf.Variable]:
        """As `base_variables`; a `TaskEncoder` has more."""
        return self.base_variables()

    def specs(self) -> dict[str, VariableSpec]:
        """Dict from the names of `named_variables` to their `VariableSpec`s."""
        return base_specs(self.config)

    def get_config(self) -> dict[str, Any]:
        own = {"product_dtype": self.product_dtype, "frozen_layers": self.frozen_layers}
        return self.config | own | {"name": self.name}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> "AdapterBertEncoder":
        return cls(**config)
