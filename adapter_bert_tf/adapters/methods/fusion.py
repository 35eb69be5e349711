"""AdapterFusion: for each token, an attention over members weights what each of them adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adapter_bert_tf.adapters.methods.bottleneck import Bottleneck
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.modules import AdapterModule, Function, Sublayer
from adapter_bert_tf.adapters.ops import MEMBERS, Tensor, dense
from adapter_bert_tf.adapters.registry import module_for
from adapter_bert_tf.adapters.variable_specs import values_with_prefix
from adapter_bert_tf.lazy import tf

Observer: TypeAlias = Callable[[Sublayer, "tf.Tensor"], None]


@module_for(FusionConfig)
class FusionModule(AdapterModule):
    """A fusion after each sublayer where its members have an adapter.

    The values are named `fusion/layer_I/SUBLAYER/VARIABLE` and `members/layer_I/SUBLAYER/VARIABLE`,
    the dropouts of scores `fusion/layer_I/SUBLAYER`. `observe` is as in `fusion_output`.
    """

    config: FusionConfig

    def __init__(self, *args: Any, observe: Observer | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.observe = observe

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
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

    The values are those of the fusion and of all members, `[members, ...]`, by the last part of
    their names. `dropout` is a function of the scores; `observe` is called with the sublayer and
    the members' shares `[batch, seq, members]`. Returns `[batch, seq, hidden]`.
    """
    member, dtype = config.member, sublayer.output.dtype
    bottleneck = Bottleneck(member, members, sublayer, MEMBERS)
    x, z, up = bottleneck.input, bottleneck.down(), None
    if member.normalize_output:
        z = tf.cast(bottleneck.up(z), dtype)
    else:
        z = tf.concat([z, tf.ones_like(z[..., :1])], -1)  # For the up bias.
        up = tf.concat([members["up_kernel"], members["up_bias"][:, tf.newaxis]], 1)
    merge_first = bool(sublayer.in_training) and up is not None
    query = (_merged_query if merge_first else _query)(values, tf.cast(x, dtype), up)
    scores = tf.reduce_sum(tf.cast(query * z, tf.float32), -1) * member.scale
    scores += _key_bias_score(values, tf.cast(x, dtype))
    shares = tf.nn.softmax(dropout(scores) if dropout is not None else scores)
    if observe is not None:
        observe(sublayer, shares)
    weighted = z * tf.cast(shares, dtype)[..., tf.newaxis]
    result = (_merged_value if merge_first else _value)(values, weighted, up)
    return result if member.scale == 1.0 else result * member.scale


def _key_bias_score(values: Mapping[str, Tensor], x: tf.Tensor) -> tf.Tensor:
    """`(x Q + b_Q) . b_K`, float32 `[batch, seq, 1]`.

    It is the same for all members, so it changes the softmax only where dropout removes scores.
    """
    kernel = tf.linalg.matvec(values["query_kernel"], values["key_bias"])
    bias = tf.tensordot(values["query_bias"], values["key_bias"], 1)
    score = tf.tensordot(x, tf.cast(kernel, x.dtype), 1)[..., tf.newaxis]
    return tf.cast(score, tf.float32) + bias


# `_query` and `_value` multiply by one kernel after the other, which takes the fewest operations
# for few tokens. The merged ones multiply `Q K^T U_n^T` and `U_n V` first, in float32, which costs
# as much as about `hidden` tokens: half the operations in training, which has thousands of tokens
# in a batch and needs the gradients of Q, K and V. `up`, `[members, bottleneck + 1, hidden]`, has
# the up kernels U_n and in the last row the biases; None if z are the outputs z_n themselves.


def _query(values: Mapping[str, Tensor], x: tf.Tensor, up: Any) -> tf.Tensor:
    """`(x Q + b_Q) K^T U_n^T`, `[batch, seq, members, width]`; without `up` `[..., 1, hidden]`."""
    kernels = {name: tf.cast(value, x.dtype) for name, value in values.items()}
    query = dense(x, kernels["query_kernel"], kernels["query_bias"])
    query = tf.tensordot(query, kernels["key_kernel"], [[2], [1]])
    if up is None:
        return query[:, :, tf.newaxis]
    return tf.einsum("bsh,nmh->bsnm", query, tf.cast(up, x.dtype))


def _merged_query(values: Mapping[str, Tensor], x: tf.Tensor, up: Any) -> tf.Tensor:
    query_kernel = tf.concat([values["query_kernel"], values["query_bias"][tf.newaxis]], 0)
    product = tf.matmul(query_kernel, values["key_kernel"], transpose_b=True)
    kernel = tf.einsum("hk,nmk->nhm", product, up)
    return dense(x, tf.cast(kernel[:, :-1], x.dtype), tf.cast(kernel[:, -1], x.dtype), MEMBERS)


def _value(values: Mapping[str, Tensor], weighted: tf.Tensor, up: Any) -> tf.Tensor:
    """`sum_n s_n a_n U_n V`, `[batch, seq, hidden]`, from the `s_n a_n`, or the `s_n z_n`."""
    if up is None:
        output = tf.reduce_sum(weighted, 2)
    else:
        output = tf.einsum("bsnm,nmh->bsh", weighted, tf.cast(up, weighted.dtype))
    return tf.tensordot(output, tf.cast(values["value_kernel"], output.dtype), 1)


def _merged_value(values: Mapping[str, Tensor], weighted: tf.Tensor, up: Any) -> tf.Tensor:
    kernel = tf.einsum("nmh,hk->nmk", up, values["value_kernel"])
    return tf.einsum("bsnm,nmk->bsk", weighted, tf.cast(kernel, weighted.dtype))
