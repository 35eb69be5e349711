"""Models whose base has taken in the changes of a method such as LoRA."""

from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.store import contents
from adapter_bert_tf.task_types import type_of


def merged_model(model: EncoderModel, config: Mapping[str, Any]) -> EncoderModel:
    """A model without modules that computes the same, as fast as the base alone.

    `model` has the type of one task in the adapter's `config`, and stays as it is. Its own
    LayerNorms and pooler become those of the new base. Raises `Unsupported` for a method that
    cannot be merged.
    """
    adapter = contents.adapter_of(config)
    if adapter:
        adapter.check_mergeable()
    values = {name: variable.numpy() for name, variable in model.named_variables().items()}
    if adapter:
        own = {name: value for name, value in values.items() if not name.startswith("bert/")}
        values |= adapter.merged(own, values)
    encoder = new_encoder({**model.encoder.config, "random_weights": False})
    merged = type_of(config).new_model(encoder, contents.num_outputs(config))
    for name, variable in merged.named_variables().items():
        variable.assign(values[name])
    return merged
