"""Projected attention layers (PALs): each task adds a small attention to every block."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from adapter_bert_tf.adapters.fields import ACTIVATIONS
from adapter_bert_tf.adapters.methods.multitask import (
    TASK_IDS,
    TASKS,
    MultitaskConfig,
    gather_rows,
)
from adapter_bert_tf.adapters.modules import AdapterModule, Sublayer
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, ROWS, chosen, dense
from adapter_bert_tf.adapters.registry import module_for, register, require
from adapter_bert_tf.adapters.variable_specs import (
    ATTENTION_DROPOUT,
    Sizes,
    VariableSpec,
    dense_specs,
    values_with_prefix,
)
from adapter_bert_tf.lazy import tf, tf_keras

NAME = "pals"
SCALE = 0.02  # Standard deviation of all kernels at the start.
MOST = 65_536
MASKED = -1e9  # Added to the scores of masked positions.

_require = functools.partial(require, "PALs")
_linear = functools.partial(dense_specs, group=NAME, start=SCALE, cut=False)


@register(NAME)
@dataclasses.dataclass(frozen=True)
class PalsConfig(MultitaskConfig):
    """PALs of several tasks (Stickland & Murray 2019, sections 3.2 and 4).

    A block becomes `LayerNorm(a + FFN(a) + TS(h))`, with h its input and a the output of its
    attention sublayer. `TS(h) = gelu(V_D SA(V_E h))`, as in the authors' code; the paper has no
    gelu there. SA is multi-head attention without a projection of its output. A task has one V_E
    and one V_D for all layers, and one SA in each layer.

    Args:
      tasks: names of the tasks, in the order of their numbers.
      size: of the output of V_E.
      num_heads: of SA. The paper has 12; the authors' code always computes 6.
      activation: one of `config.ACTIVATIONS`.
    """

    groups: ClassVar[tuple[str, ...]] = (NAME,)

    tasks: tuple[str, ...]
    size: int = 204
    num_heads: int = 12
    activation: str = "gelu_erf"

    def __post_init__(self) -> None:
        self._check_tasks()
        for name in ("size", "num_heads"):
            value = getattr(self, name)
            _require(type(value) is int and 0 < value <= MOST, f"{name} is 1 to {MOST}", value)
        fits, known = self.size % self.num_heads == 0, self.activation in ACTIVATIONS
        _require(fits, f"size must be a multiple of num_heads, {self.num_heads}", self.size)
        _require(known, f"activation is one of {ACTIVATIONS}", self.activation)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Variables `tasks/TASK/pals/...`."""
        hidden, size = (sizes["hidden_size"],), (self.size,)
        task_specs = _linear("encoder/", hidden, size) | _linear("decoder/", size, hidden)
        for layer in range(sizes["num_layers"]):
            for name in ("query", "key", "value"):
                task_specs |= _linear(f"layer_{layer}/{name}/", size, size, layer=layer)
        return {
            f"{TASKS}/{task}/{NAME}/{name}": spec
            for task in self.tasks
            for name, spec in task_specs.items()
        }

    def new_dropouts(self, sizes: Sizes) -> dict[str, Callable[..., Any]]:
        """One for the attention of each layer, with the rate of the base."""
        rate = sizes.get("attention_dropout", ATTENTION_DROPOUT)
        layers = range(sizes["num_layers"])
        return {f"layer_{i}": tf_keras.layers.Dropout(rate, dtype=tf.float32) for i in layers}

    def summary(self) -> str:
        heads = f"{self.num_heads} heads" if self.num_heads > 1 else "1 head"
        return f"PALs of {', '.join(self.tasks)}: size {self.size}, {heads}"


@module_for(PalsConfig)
class PalsModule(AdapterModule):
    """The PALs of all tasks; the inputs of a call have `task_ids`, `[batch]`."""

    config: PalsConfig

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        """The PALs of each row's task."""
        values_by_task = {
            task: values_with_prefix(self.values, f"{TASKS}/{task}/{NAME}")
            for task in self.config.tasks
        }
        rows = gather_rows(values_by_task, inputs[TASK_IDS])
        return RowPals(self.config, rows, self.dropouts, ROWS)


class RowPals(AdapterModule):
    """A PAL for each row of a batch; the names of the values are those below `tasks/TASK/pals`."""

    config: PalsConfig

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        """The sublayer's output, in feed-forward sublayers plus that of the block's PAL."""
        if sublayer.name != "feed_forward":
            return sublayer.unchanged()
        with tf.name_scope(f"layer_{sublayer.layer}/{NAME}"):
            return sublayer.changed_by(self.output(sublayer))

    def output(self, sublayer: Sublayer) -> tf.Tensor:
        """`TS(h)`, `[batch, seq, hidden]` in the compute dtype."""
        dtype = sublayer.output.dtype
        x = self._dense("encoder", tf.cast(sublayer.block_input, dtype))
        queries = chosen(x, sublayer.output_range)
        x = self._attention(sublayer, queries, x)
        return ACTIVATION_FUNCTIONS[self.config.activation](self._dense("decoder", x))

    def _attention(self, sublayer: Sublayer, queries: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """Multi-head attention, `[batch, seq, size]`, with a float32 softmax."""
        layer, heads = f"layer_{sublayer.layer}", self.config.num_heads
        width = self.config.size // heads
        inputs = {"query": queries, "key": x, "value": x}
        query, key, value = (
            _in_heads(self._dense(f"{layer}/{name}", inputs[name]), heads, width) for name in inputs
        )
        scores = tf.cast(tf.einsum("bqnw,bknw->bnqk", query, key), tf.float32)
        mask = tf.cast(sublayer.mask[:, tf.newaxis], tf.float32)
        shares = tf.nn.softmax(scores / math.sqrt(width) + (1.0 - mask) * MASKED)
        if layer in self.dropouts:
            shares = self.dropouts[layer](shares)
        x = tf.einsum("bnqk,bknw->bqnw", tf.cast(shares, value.dtype), value)
        return tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], self.config.size])

    def _dense(self, name: str, x: tf.Tensor) -> tf.Tensor:
        kernel, bias = (
            tf.cast(self.values[f"{name}/{part}"], x.dtype) for part in ("kernel", "bias")
        )
        return dense(x, kernel, bias, ROWS)


def _in_heads(x: tf.Tensor, heads: int, width: int) -> tf.Tensor:
    return tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], heads, width])
