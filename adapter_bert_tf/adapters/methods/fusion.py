"""AdapterFusion: for each token, an attention over members weights what each of them adds."""

from collections.abc import Callable, Mapping

import tensorflow as tf

from adapter_bert_tf.adapters.methods.bottleneck import (
    adapter_input,
    normalize_input,
    normalize_output,
    project_down,
    project_up,
)
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.modules import AdapterModule, Function, Sublayer
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, MEMBERS, Tensor, dense
from adapter_bert_tf.adapters.registry import module_for
from adapter_bert_tf.adapters.variable_specs import values_with_prefix

Observer = Callable[[Sublayer, tf.Tensor], None]


@module_for(FusionConfig)
class FusionModule(AdapterModule):
    """A fusion after each sublayer where its members have an adapter.

    The values are named `fusion/layer_I/SUBLAYER/VARIABLE` and `members/layer_I/SUBLAYER/VARIABLE`,
    the dropouts of scores `fusion/layer_I/SUBLAYER`.

    Args:
      config, values, dropouts, stacked: as of `AdapterModule`.
      observe: as in `fusion_output`.
    """

    config: FusionConfig

    def __init__(
        self,
        config: FusionConfig,
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
        observe: Observer | None = None,
    ) -> None:
        super().__init__(config, values, dropouts, stacked)
        self.observe = observe

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        """The sublayer's output plus that of the fusion."""
        path = f"layer_{sublayer.layer}/{sublayer.name}"
        values = values_with_prefix(self.values, f"fusion/{path}")
        members = values_with_prefix(self.values, f"members/{path}")
        if not values:
            return sublayer.unchanged()
        dropout = self.dropouts.get(f"fusion/{path}")
        with tf.name_scope(path):
            output = fusion_output(self.config, values, members, sublayer, dropout, self.observe)
            return sublayer.changed_by(output)


def fusion_output(
    config: FusionConfig,
    values: Mapping[str, Tensor],
    members: Mapping[str, Tensor],
    sublayer: Sublayer,
    dropout: Function | None = None,
    observe: Observer | None = None,
) -> tf.Tensor:
    """The change that a fusion adds to a sublayer's output (Pfeiffer et al. 2021, section 3.2).

    With z_n the output of member n and x the input of the members, the result is
    `sum_n s_n z_n V`, where s is the softmax of `(x Q + b_Q) . (z_n K + b_K)` over the members. As
    z_n = a_n U_n, with a_n the values in the member's bottleneck, the scores are the products of
    `(x Q + b_Q) K^T U_n^T` with a_n, and no z_n is computed.

    Args:
      config: `FusionConfig`.
      values: dict from `query_kernel`, `query_bias`, `key_kernel`, `key_bias` and `value_kernel`
        to variable or tensor.
      members: dict from the names of a member's variables to all members', `[members, ...]`.
      sublayer: the `Sublayer`.
      dropout: function of the scores, or None.
      observe: called with the sublayer and the members' shares `[batch, seq, members]`, or None.

    Returns:
      `[batch, seq, hidden]`, without the residual.
    """
    member, dtype = config.member, sublayer.output.dtype
    x = adapter_input(member, sublayer)
    down_input, kernels = normalize_input(member, members, sublayer, x, MEMBERS)
    z = project_down(down_input, kernels, ACTIVATION_FUNCTIONS[member.activation], MEMBERS)
    if member.normalize_output:
        z = normalize_output(project_up(z, kernels, MEMBERS), members, MEMBERS)
        z, attention = tf.cast(z, dtype), OutputAttention(values)
    else:
        z = tf.concat([z, tf.ones_like(z[..., :1])], -1)  # For the up bias.
        up = tf.concat([members["up_kernel"], members["up_bias"][:, tf.newaxis]], 1)
        attention_class = MergedAttention if dropout is not None else BottleneckAttention
        attention = attention_class(values, up)
    scores = attention.scores(tf.cast(x, dtype), z) * member.scale
    scores += _key_bias_score(values, tf.cast(x, dtype))
    shares = tf.nn.softmax(dropout(scores) if dropout is not None else scores)
    if observe is not None:
        observe(sublayer, shares)
    result = attention.combine(z * tf.cast(shares, dtype)[..., tf.newaxis])
    return result if member.scale == 1.0 else result * member.scale


def _key_bias_score(values: Mapping[str, Tensor], x: tf.Tensor) -> tf.Tensor:
    """`(x Q + b_Q) . b_K`, float32 `[batch, seq, 1]`.

    It is the same for all members, so it changes the softmax only where dropout removes scores.
    """
    kernel = tf.linalg.matvec(values["query_kernel"], values["key_bias"])
    bias = tf.tensordot(values["query_bias"], values["key_bias"], 1)
    score = tf.tensordot(x, tf.cast(kernel, x.dtype), 1)[..., tf.newaxis]
    return tf.cast(score, tf.float32) + bias


class OutputAttention:
    """The attention over members, computed from their outputs z_n.

    Args:
      values: as in `fusion_output`.
    """

    def __init__(self, values: Mapping[str, Tensor]) -> None:
        self.values = values

    def scores(self, x: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
        """The scores without the term of the key bias, float32 `[batch, seq, members]`.

        Args:
          x: `[batch, seq, hidden]`, the input of the members.
          z: `[batch, seq, members, hidden]`.
        """
        query = self.query_times_key(x)[:, :, tf.newaxis]
        return tf.reduce_sum(tf.cast(query * z, tf.float32), -1)

    def combine(self, weighted: tf.Tensor) -> tf.Tensor:
        """`sum_n s_n z_n V`, `[batch, seq, hidden]`, from the `s_n z_n`."""
        return self.times_value(tf.reduce_sum(weighted, 2))

    def query_times_key(self, x: tf.Tensor) -> tf.Tensor:
        """`(x Q + b_Q) K^T`, `[batch, seq, hidden]`."""
        kernels = {name: tf.cast(value, x.dtype) for name, value in self.values.items()}
        query = dense(x, kernels["query_kernel"], kernels["query_bias"])
        return tf.tensordot(query, kernels["key_kernel"], [[2], [1]])

    def times_value(self, x: tf.Tensor) -> tf.Tensor:
        """`x V`, `[batch, seq, hidden]`."""
        return tf.tensordot(x, tf.cast(self.values["value_kernel"], x.dtype), 1)


class BottleneckAttention(OutputAttention):
    """The same attention, computed from the values in the bottlenecks: z_n = a_n U_n.

    It multiplies by one kernel after the other, which takes the fewest operations for few tokens.

    Args:
      values: as in `fusion_output`.
      up: `[members, bottleneck + 1, hidden]`, the up kernels and in the last row the biases.
    """

    def __init__(self, values: Mapping[str, Tensor], up: tf.Tensor) -> None:
        super().__init__(values)
        self.up = up

    def scores(self, x: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
        """The scores without the term of the key bias, float32 `[batch, seq, members]`.

        Args:
          x: `[batch, seq, hidden]`, the input of the members.
          z: `[batch, seq, members, bottleneck + 1]`, with 1 in the last place.
        """
        query = tf.einsum("bsh,nmh->bsnm", self.query_times_key(x), tf.cast(self.up, x.dtype))
        return tf.reduce_sum(tf.cast(query * z, tf.float32), -1)

    def combine(self, weighted: tf.Tensor) -> tf.Tensor:
        """`sum_n s_n a_n U_n V`, `[batch, seq, hidden]`, from the `s_n a_n`."""
        up = tf.cast(self.up, weighted.dtype)
        return self.times_value(tf.einsum("bsnm,nmh->bsh", weighted, up))


class MergedAttention(BottleneckAttention):
    """The same with `Q K^T U_n^T` and `U_n V` multiplied first, in float32.

    These two products cost as much as about `hidden` tokens. Training has thousands of tokens in a
    batch and needs the gradients of Q, K and V, so it takes half the operations.
    """

    def scores(self, x: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
        values = self.values
        query_kernel = tf.concat([values["query_kernel"], values["query_bias"][tf.newaxis]], 0)
        product = tf.matmul(query_kernel, values["key_kernel"], transpose_b=True)
        kernel = tf.einsum("hk,nmk->nhm", product, self.up)
        query = dense(x, tf.cast(kernel[:, :-1], x.dtype), tf.cast(kernel[:, -1], x.dtype), MEMBERS)
        return tf.reduce_sum(tf.cast(query * z, tf.float32), -1)

    def combine(self, weighted: tf.Tensor) -> tf.Tensor:
        kernel = tf.einsum("nmh,hk->nmk", self.up, self.values["value_kernel"])
        return tf.einsum("bsnm,nmk->bsk", weighted, tf.cast(kernel, weighted.dtype))
