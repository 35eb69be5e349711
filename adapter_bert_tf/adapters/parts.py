"""What runs besides the frozen base: adapters, and LayerNorms and a pooler of a task's own."""

import tensorflow as tf

from adapter_bert_tf.adapters.bottleneck import adapt, dense, layer_norm

POOLER = "bert/pooler/dense"


def norm_names(num_layers):
    """Common names of all LayerNorms of an encoder, without `/gamma` and `/beta`."""
    blocks = [
        f"bert/encoder/layer_{i}/{place}/LayerNorm"
        for i in range(num_layers)
        for place in ("attention/output", "output")
    ]
    return ["bert/embeddings/LayerNorm", *blocks]


class Parts:
    """What the encoder asks for in a call. This one leaves everything to the base."""

    def adapters_at(self, layer):
        """Dict from sublayer to a callable `(output, residual, layer_norm)`, of one layer."""
        return {}

    def norm(self, name, own):
        """The LayerNorm of a common name; `own` is the base's."""
        return own

    def block_norm(self, layer, sublayer, own):
        """The LayerNorm that follows a sublayer."""
        place = {"attention": "attention/output", "feed_forward": "output"}[sublayer]
        return self.norm(f"bert/encoder/layer_{layer}/{place}/LayerNorm", own)

    def pooler(self, own):
        """The pooler, a function of `[batch, hidden]`; `own` is the base's."""
        return own


class GivenParts(Parts):
    """Parts whose values come with the call, the same for all rows or one for each row.

    Args:
      config: `AdapterConfig` of the adapters, or None if there are none.
      values: dict from common name to tensor: `adapters/...`, and what replaces the base's
        LayerNorms and pooler. Each in the variable's shape, or all with a leading `[batch]`.
    """

    def __init__(self, config, values):
        self.config = config
        self.values = values

    def adapters_at(self, layer):
        if self.config is None:
            return {}
        found = {
            name: self._under(f"adapters/layer_{layer}/{name}/") for name in self.config.sublayers
        }
        return {name: self._adapter(values) for name, values in found.items() if values}

    def _adapter(self, values):
        return lambda output, residual, layer_norm: adapt(
            self.config, values, output, residual, layer_norm
        )

    def norm(self, name, own):
        values = self._under(f"{name}/")
        if not values:
            return own
        return lambda x: layer_norm(
            tf.cast(x, tf.float32), values["gamma"], values["beta"], own.epsilon
        )

    def pooler(self, own):
        values = self._under(f"{POOLER}/")
        return (lambda x: tf.tanh(dense(x, values["kernel"], values["bias"]))) if values else own

    def _under(self, prefix):
        return {
            name.removeprefix(prefix): value
            for name, value in self.values.items()
            if name.startswith(prefix)
        }
