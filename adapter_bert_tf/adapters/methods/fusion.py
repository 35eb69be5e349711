"""AdapterFusion: in each place an attention decides, token by token, which members to listen to."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.methods.bottleneck import (
    narrowed,
    normalized,
    read,
    source,
    up_of,
    values_with_prefix,
)
from adapter_bert_tf.adapters.modules import AdapterModule, Function, Place, add
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, MEMBERS, Tensor, dense
from adapter_bert_tf.errors import InputError

if TYPE_CHECKING:
    from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig

HOTTEST = 50.0  # Temperature at the first step, where it falls at all; 1 at the end.
Observer = Callable[[Place, tf.Tensor], None]


def fused_change(
    config: "FusionConfig",
    values: Mapping[str, Tensor],
    members: Mapping[str, Tensor],
    place: Place,
    dropout: Function | None = None,
    observe: Observer | None = None,
) -> tf.Tensor:
    """What a fusion adds to a sublayer's output (Pfeiffer et al. 2021, section 3.2).

    With z_n what member n adds and x what members read, `s = softmax((x Q + b_Q) . (z_n K + b_K))`
    over the members, and the result is `sum_n s_n z_n V`. As z_n = a_n U_n, with a_n what is in the
    member's bottleneck, the scores are those of `(x Q + b_Q) K^T U_n^T` with a_n, and no z_n is
    ever made.

    Args:
      config: `FusionConfig`.
      values: dict from `query_kernel`, `query_bias`, `key_kernel`, `key_bias` and `value_kernel`
        to variable or tensor.
      members: dict from the names of a member's variables to all members', `[members, ...]`.
      place: the `Place`.
      dropout: function of the scores, or None.
      observe: is called with the place and the members' shares `[batch, seq, members]`, or None.

    Returns:
      `[batch, seq, hidden]`, without the residual.
    """
    member, dtype = config.member, place.output.dtype
    seen = source(member, place)
    x, kernels = read(member, members, place, seen, MEMBERS)
    found = narrowed(x, kernels, ACTIVATION_FUNCTIONS[member.activation], MEMBERS)
    products: Products
    if member.normalize_output:
        found = tf.cast(normalized(dense(found, *up_of(kernels), MEMBERS), members, MEMBERS), dtype)
        products = Whole(values)
    else:
        found = tf.concat([found, tf.ones_like(found[..., :1])], -1)  # For the up bias.
        up = tf.concat([members["up_kernel"], members["up_bias"][:, tf.newaxis]], 1)
        products = Merged(values, up) if dropout is not None else Stepwise(values, up)
    scores = products.scores(tf.cast(seen, dtype), found) * member.scale
    scores += _of_key_bias(values, tf.cast(seen, dtype))
    shares = tf.nn.softmax(dropout(scores) if dropout is not None else scores)
    if observe is not None:
        observe(place, shares)
    result = products.mixed(found * tf.cast(shares, dtype)[..., tf.newaxis])
    return result if member.scale == 1.0 else result * member.scale


def _of_key_bias(values: Mapping[str, Tensor], x: tf.Tensor) -> tf.Tensor:
    """`(x Q + b_Q) . b_K`, float32 `[batch, seq, 1]`.

    The same for all members, so that the softmax does not see it; but what dropout leaves does.
    """
    kernel = tf.linalg.matvec(values["query_kernel"], values["key_bias"])
    bias = tf.tensordot(values["query_bias"], values["key_bias"], 1)
    found = tf.tensordot(x, tf.cast(kernel, x.dtype), 1)[..., tf.newaxis]
    return tf.cast(found, tf.float32) + bias


class Products(Protocol):
    """The products of a fusion with what is found in its members."""

    def scores(self, x: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
        """float32 `[batch, seq, members]`, but for the key's bias."""

    def mixed(self, weighted: tf.Tensor) -> tf.Tensor:
        """`[batch, seq, hidden]`, of what is found times the members' shares."""


class Whole:
    """The products with the members' whole changes, which a LayerNorm keeps from being merged.

    Args:
      values: as in `fused_change`.
    """

    def __init__(self, values: Mapping[str, Tensor]) -> None:
        self.values = values

    def scores(self, x: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
        """float32 `[batch, seq, members]`, but for the key's bias.

        Args:
          x: `[batch, seq, hidden]`, what asks.
          found: `[batch, seq, members, hidden]`.
        """
        return tf.reduce_sum(tf.cast(self.asked(x)[:, :, tf.newaxis] * found, tf.float32), -1)

    def mixed(self, weighted: tf.Tensor) -> tf.Tensor:
        """`sum_n s_n z_n V`, `[batch, seq, hidden]`, of the `s_n z_n`."""
        return self.valued(tf.reduce_sum(weighted, 2))

    def asked(self, x: tf.Tensor) -> tf.Tensor:
        """`(x Q + b_Q) K^T`, `[batch, seq, hidden]`."""
        own = {name: tf.cast(value, x.dtype) for name, value in self.values.items()}
        query = dense(x, own["query_kernel"], own["query_bias"])
        return tf.tensordot(query, own["key_kernel"], [[2], [1]])

    def valued(self, x: tf.Tensor) -> tf.Tensor:
        """`x V`, `[batch, seq, hidden]`."""
        return tf.tensordot(x, tf.cast(self.values["value_kernel"], x.dtype), 1)


class Stepwise(Whole):
    """The products of a fusion one after the other: fewest operations for few tokens.

    Args:
      values: as in `fused_change`.
      up: `[members, bottleneck + 1, hidden]`, the up kernels and under them the biases.
    """

    def __init__(self, values: Mapping[str, Tensor], up: tf.Tensor) -> None:
        super().__init__(values)
        self.up = up

    def scores(self, x: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
        """float32 `[batch, seq, members]`, but for the key's bias.

        Args:
          x: `[batch, seq, hidden]`, what asks.
          found: `[batch, seq, members, bottleneck + 1]`, the last of which is 1.
        """
        asked = tf.einsum("bsh,nmh->bsnm", self.asked(x), tf.cast(self.up, x.dtype))
        return tf.reduce_sum(tf.cast(asked * found, tf.float32), -1)

    def mixed(self, weighted: tf.Tensor) -> tf.Tensor:
        """`sum_n s_n a_n U_n V`, `[batch, seq, hidden]`, of the `s_n a_n`."""
        up = tf.cast(self.up, weighted.dtype)
        return self.valued(tf.einsum("bsnm,nmh->bsh", weighted, up))


class Merged(Stepwise):
    """The same with `Q K^T U_n^T` and `U_n V` made first, in float32.

    That costs as much as some `hidden` tokens do; training, with thousands in a batch and the
    gradients of Q, K and V to make, takes half the operations.
    """

    def scores(self, x: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
        values = self.values
        asking = tf.concat([values["query_kernel"], values["query_bias"][tf.newaxis]], 0)
        kernel = tf.einsum(
            "hk,nmk->nhm", tf.matmul(asking, values["key_kernel"], transpose_b=True), self.up
        )
        asked = dense(x, tf.cast(kernel[:, :-1], x.dtype), tf.cast(kernel[:, -1], x.dtype), MEMBERS)
        return tf.reduce_sum(tf.cast(asked * found, tf.float32), -1)

    def mixed(self, weighted: tf.Tensor) -> tf.Tensor:
        kernel = tf.einsum("nmh,hk->nmk", self.up, self.values["value_kernel"])
        return tf.einsum("bsnm,nmk->bsk", weighted, tf.cast(kernel, weighted.dtype))


class FusionModule(AdapterModule):
    """A fusion in each place where its members have an adapter.

    Args:
      config: `FusionConfig`.
      values: dict from `fusion/layer_I/SUBLAYER/VARIABLE` and `members/layer_I/SUBLAYER/VARIABLE`
        to variable or tensor.
      dropouts: dict from `fusion/layer_I/SUBLAYER` to a function of the scores, or None.
      observe: as in `fused_change`.
    """

    def __init__(
        self,
        config: "FusionConfig",
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
        observe: Observer | None = None,
    ) -> None:
        self.config, self.values, self.observe = config, values, observe
        self.dropouts = dropouts or {}

    def adapted(self, place: Place) -> tf.Tensor:
        """The sublayer's output and what the fusion makes of the members' changes of it."""
        at = f"layer_{place.layer}/{place.sublayer}"
        values, members = (
            values_with_prefix(self.values, f"fusion/{at}"),
            values_with_prefix(self.values, f"members/{at}"),
        )
        if not values:
            return super().adapted(place)
        dropout = self.dropouts.get(f"fusion/{at}")
        with tf.name_scope(at):
            change = fused_change(self.config, values, members, place, dropout, self.observe)
            return add(place, change)


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class ScoreDropout(tf_keras.layers.Dropout):
    """Dropout on scores, divided by a temperature that falls while training.

    It falls from 50 to 1 in equal steps, and is 1 after that and wherever nothing is trained: like
    dropout it is there for training alone, so that nothing of it must be saved.

    Args:
      rate: of the dropout.
      cooling_steps: training steps until the temperature is 1; 0: it always is.
    """

    def __init__(self, rate: float, cooling_steps: int = 0, **kwargs: Any) -> None:
        super().__init__(rate, dtype=tf.float32, **kwargs)
        self.cooling_steps = cooling_steps

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """The scores, of any shape, as they go into the softmax."""
        dropped = super().call(inputs, training=training)
        training = tf_keras.backend.learning_phase() if training is None else training
        if not self.cooling_steps or not training:
            return dropped
        self.require_step()
        return dropped / self.temperature(self._random_generator.step)

    def require_step(self) -> None:
        """What cools must know which step it is. Raises `InputError`."""
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
