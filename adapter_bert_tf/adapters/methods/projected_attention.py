"""Projected attention layers: a small attention of each task beside every block."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import ACTIVATIONS
from adapter_bert_tf.adapters.methods.bottleneck import values_with_prefix
from adapter_bert_tf.adapters.methods.multitask import TASK_IDS, TASKS, MultitaskConfig
from adapter_bert_tf.adapters.modules import AdapterModule, Function, Place, add
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, ROWS, Tensor, dense
from adapter_bert_tf.adapters.registry import register
from adapter_bert_tf.adapters.variable_specs import ATTENTION_DROPOUT, Sizes, VariableSpec
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

NAME = "pals"
SCALE = 0.02  # Standard deviation of all kernels at the start.
MOST = 65_536
FAR = -1e9  # Of a score of what may not be attended to.


@register(NAME)
@dataclasses.dataclass(frozen=True)
class PalsConfig(MultitaskConfig):
    """PALs of several tasks (Stickland & Murray 2019, sections 3.2 and 4).

    A block becomes `LayerNorm(a + FFN(a) + TS(h))`, with h what goes into it and a what follows its
    attention. `TS(h) = gelu(V_D SA(V_E h))`, as in the authors' code; the paper has no gelu there.
    SA is multi-head attention without a projection of its output. V_E and V_D are a task's for all
    layers, SA is its own in each.

    Args:
      tasks: names of the tasks, in the order of their numbers.
      size: what V_E projects to.
      num_heads: of SA. The paper has 12; the authors' code computes 6, whatever it is told.
      activation: one of `config.ACTIVATIONS`.

    Raises:
      InputError: if a value is out of range.
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
        _require(
            self.size % self.num_heads == 0,
            f"size must be a multiple of num_heads, {self.num_heads}",
            self.size,
        )
        known = self.activation in ACTIVATIONS
        _require(known, f"activation is one of {ACTIVATIONS}", self.activation)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """As `PartsConfig.specs`: `tasks/TASK/pals/...`."""
        hidden, size = sizes["hidden_size"], self.size
        of_one = _linear("encoder", hidden, size) | _linear("decoder", size, hidden)
        for layer in range(sizes["num_layers"]):
            for name in ("query", "key", "value"):
                of_one |= _linear(f"layer_{layer}/{name}", size, size, layer)
        return {
            f"{TASKS}/{task}/{NAME}/{name}": spec
            for task in self.tasks
            for name, spec in of_one.items()
        }

    def parts(
        self,
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
    ) -> AdapterModule:
        """As `PartsConfig.parts`."""
        return PalsModule(self, values, dropouts)

    def new_dropouts(self, sizes: Sizes) -> dict[str, Callable[..., Any]]:
        """One for the attention of each layer, at the rate of the base's own."""
        rate = sizes.get("attention_dropout", ATTENTION_DROPOUT)
        layers = range(sizes["num_layers"])
        return {f"layer_{i}": tf_keras.layers.Dropout(rate, dtype=tf.float32) for i in layers}

    def summary(self) -> str:
        """As `PartsConfig.summary`."""
        heads = f"{self.num_heads} heads" if self.num_heads > 1 else "1 head"
        return f"PALs of {', '.join(self.tasks)}: size {self.size}, {heads}"


class PalsModule(AdapterModule):
    """Finds the weights of each row's task; the inputs of a call have `task_ids`, `[batch]`.

    Args:
      config: `PalsConfig`.
      values: dict from the names of its `specs` to variables or tensors.
      dropouts: dict from `layer_I` to a function of the attention's shares, or None.
    """

    def __init__(
        self,
        config: PalsConfig,
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
    ) -> None:
        self.config, self.values, self.dropouts = config, values, dropouts or {}

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        """The PALs of the rows."""
        of_tasks = [
            values_with_prefix(self.values, f"{TASKS}/{task}/{NAME}") for task in self.config.tasks
        ]
        # Stacked first, so that the gradient of each variable is dense.
        rows = {
            name: tf.gather(tf.stack([values[name] for values in of_tasks]), inputs[TASK_IDS])
            for name in of_tasks[0]
        }
        return RowPals(self.config, rows, self.dropouts)


class RowPals(AdapterModule):
    """A PAL for each row of a batch.

    Args:
      config: `PalsConfig`.
      rows: dict from the names under `tasks/TASK/pals` to `[batch, ...]`.
      dropouts: as of `PalsParts`.
    """

    def __init__(
        self,
        config: PalsConfig,
        rows: Mapping[str, tf.Tensor],
        dropouts: Mapping[str, Function],
    ) -> None:
        self.config, self.rows, self.dropouts = config, rows, dropouts

    def adapted(self, place: Place) -> tf.Tensor:
        """The sublayer's output, and after the feed-forward sublayer the PAL's of the block."""
        if place.sublayer != "feed_forward":
            return super().adapted(place)
        with tf.name_scope(f"layer_{place.layer}/{NAME}"):
            return add(place, self.change(place))

    def change(self, place: Place) -> tf.Tensor:
        """`TS(h)`, `[batch, seq, hidden]` in the compute dtype."""
        dtype = place.output.dtype
        narrow = self._dense("encoder", tf.cast(place.block_input, dtype))
        asking = narrow[:, : place.output.shape[1] or tf.shape(place.output)[1]]
        mixed = self._attention(place, asking, narrow)
        return ACTIVATION_FUNCTIONS[self.config.activation](self._dense("decoder", mixed))

    def _attention(self, place: Place, asking: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """Multi-head attention, `[batch, seq, size]`, with a float32 softmax."""
        at, heads = f"layer_{place.layer}", self.config.num_heads
        width = self.config.size // heads
        read = {"query": asking, "key": x, "value": x}
        query, key, value = (
            _in_heads(self._dense(f"{at}/{name}", read[name]), heads, width) for name in read
        )
        scores = tf.cast(tf.einsum("bqnw,bknw->bnqk", query, key), tf.float32)
        mask = tf.cast(place.mask[:, tf.newaxis], tf.float32)
        shares = tf.nn.softmax(scores / math.sqrt(width) + (1.0 - mask) * FAR)
        if at in self.dropouts:
            shares = self.dropouts[at](shares)
        found = tf.einsum("bnqk,bknw->bqnw", tf.cast(shares, value.dtype), value)
        return tf.reshape(found, [tf.shape(found)[0], tf.shape(found)[1], self.config.size])

    def _dense(self, name: str, x: tf.Tensor) -> tf.Tensor:
        kernel, bias = (tf.cast(self.rows[f"{name}/{part}"], x.dtype) for part in _PARTS)
        return dense(x, kernel, bias, ROWS)


_PARTS = ("kernel", "bias")


def _in_heads(x: tf.Tensor, heads: int, width: int) -> tf.Tensor:
    return tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], heads, width])


def _linear(
    prefix: str, inputs: int, outputs: int, layer: int | None = None
) -> dict[str, VariableSpec]:
    return {
        f"{prefix}/kernel": VariableSpec((inputs, outputs), NAME, layer, SCALE, cut=False),
        f"{prefix}/bias": VariableSpec((outputs,), NAME, layer),
    }


def _require(condition: bool, message: str, received: Any) -> None:
    if not condition:
        raise InputError(f"PALs: {message}. Received: {preview(received)}")
