"""A hypernetwork: each task's adapters from a vector of the task (Mahabadi et al. 2021)."""

import re
from collections.abc import Mapping, Sequence

import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.bottleneck import OUTPUT, values_with_prefix, variable_shapes
from adapter_bert_tf.adapters.methods.multitask import TASKS
from adapter_bert_tf.adapters.ops import Tensor, dense, layer_norm

NAME = "hypernetwork"
SHARED = f"{NAME}/generators"  # Of HyperFormer++, for all places.
PROJECTOR = f"{NAME}/projector"
VECTOR_EPSILON = 1e-6  # Of the LayerNorm on the vectors of HyperFormer++.
LAYER = re.compile(rf"{NAME}/layer_([0-9]+)/")


def generated(
    config: AdapterConfig, tasks: Sequence[str], values: Mapping[str, Tensor]
) -> dict[str, tf.Tensor]:
    """The adapters of all tasks.

    Args:
      config: `AdapterConfig` of each.
      tasks: their names.
      values: dict from the names of `HyperFormerConfig.specs` to variable or tensor.

    Returns:
      dict from the names of an adapter's variables to float32 `[tasks, ...]`.
    """
    z = tf.stack([values[embedding_of(task)] for task in tasks])
    found = _shared_norms(values, z.shape[0])
    for generator, (places, vectors) in _generators(config, values, z).items():
        for name, tensor in _generate(
            config, values_with_prefix(values, generator), vectors
        ).items():
            parts = tf.split(tensor, len(places))
            found |= {f"adapters/{at}/{name}": p for at, p in zip(places, parts, strict=True)}
    return found


def embedding_of(task: str) -> str:
    """The name of a task's embedding, `[task embedding]`."""
    return f"{TASKS}/{task}/{NAME}/embedding"


def projected(values: Mapping[str, Tensor], z: tf.Tensor) -> tf.Tensor:
    """`W2 relu(W1 z)`, and of HyperFormer++ its LayerNorm: what the generators read.

    Args:
      values: as in `generated`; without a projector z is what they read.
      z: float32 `[vectors, task embedding]`, of HyperFormer++ three times as wide.
    """
    own = values_with_prefix(values, PROJECTOR)
    if "down_kernel" in own:
        hidden = tf.nn.relu(dense(z, own["down_kernel"], own["down_bias"]))
        z = dense(hidden, own["up_kernel"], own["up_bias"])
    if "layer_norm_gamma" in own:
        z = layer_norm(z, own["layer_norm_gamma"], own["layer_norm_beta"], VECTOR_EPSILON)
    return z


def _generators(
    config: AdapterConfig, values: Mapping[str, Tensor], z: tf.Tensor
) -> dict[str, tuple[list[str], tf.Tensor]]:
    """Dict from the prefix of generators to their places, and what they read for these.

    That is `[places * tasks, vector]`, the tasks of one place after those of another.
    """
    matches = [LAYER.match(name) for name in values]
    layers = sorted({int(match[1]) for match in matches if match})
    places = [f"layer_{i}/{sublayer}" for i in layers for sublayer in config.sublayers]
    if any(name.startswith(f"{SHARED}/") for name in values):
        wide = tf.concat([_with_place(values, z, place) for place in places], 0)
        return {SHARED: (places, projected(values, wide))}
    vectors = projected(values, z)
    return {f"{NAME}/{place}": ([place], vectors) for place in places}


def _with_place(values: Mapping[str, Tensor], z: tf.Tensor, place: str) -> tf.Tensor:
    """The tasks' embeddings, and beside each those of a layer and a position."""
    own = tf.concat([values[f"{NAME}/{part}/embedding"] for part in place.split("/")], 0)
    return tf.concat([z, tf.repeat(own[tf.newaxis], z.shape[0], 0)], -1)


def _generate(
    config: AdapterConfig, generators: Mapping[str, Tensor], vectors: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Dict from the name of an adapter's variable to `[vectors, ...]`: linear in the vectors."""
    shapes = variable_shapes(config, generators["up_bias/bias"].shape[0])
    return {
        name: tf.reshape(
            dense(vectors, generators[f"{name}/kernel"], generators[f"{name}/bias"]),
            [-1, *shape],
        )
        for name, shape in shapes.items()
        if f"{name}/kernel" in generators
    }


def _shared_norms(values: Mapping[str, Tensor], tasks: int) -> dict[str, tf.Tensor]:
    """The LayerNorms of adapters that are not generated: the same for every task."""
    return {
        name.replace(NAME, "adapters", 1): tf.repeat(
            tf.convert_to_tensor(value)[tf.newaxis], tasks, 0
        )
        for name, value in values.items()
        if LAYER.match(name) and name.rsplit("/", 1)[1].startswith(f"{OUTPUT}_")
    }
