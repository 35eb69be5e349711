"""A hypernetwork: generates adapters from the embeddings of tasks (Mahabadi et al. 2021)."""

import re
from collections.abc import Mapping, Sequence

import tensorflow as tf

from adapter_bert_tf.adapters.config import OUTPUT_NORM, AdapterConfig
from adapter_bert_tf.adapters.methods.multitask import TASKS
from adapter_bert_tf.adapters.ops import Tensor, dense, layer_norm
from adapter_bert_tf.adapters.variable_specs import values_with_prefix

NAME = "hypernetwork"
SHARED = f"{NAME}/generators"  # Of HyperFormer++, for all sublayers.
PROJECTOR = f"{NAME}/projector"
VECTOR_EPSILON = 1e-6  # Of the LayerNorm of HyperFormer++ before the generators.
LAYER = re.compile(rf"{NAME}/layer_([0-9]+)/")


def generate_adapters(
    config: AdapterConfig, tasks: Sequence[str], values: Mapping[str, Tensor]
) -> dict[str, tf.Tensor]:
    """Dict from the names of an adapter's variables to float32 `[tasks, ...]`, generated."""
    z = tf.stack([values[embedding_name(task)] for task in tasks])
    adapters = _shared_norms(values, z.shape[0])
    for prefix, (sublayers, vectors) in _generator_inputs(config, values, z).items():
        generators = values_with_prefix(values, prefix)
        for name, tensor in _generate(config, generators, vectors).items():
            for sublayer, value in zip(sublayers, tf.split(tensor, len(sublayers)), strict=True):
                adapters[f"adapters/{sublayer}/{name}"] = value
    return adapters


def embedding_name(task: str) -> str:
    """The name of a task's embedding, of shape `[task embedding]`."""
    return f"{TASKS}/{task}/{NAME}/embedding"


def project_embeddings(values: Mapping[str, Tensor], z: tf.Tensor) -> tf.Tensor:
    """The input of the generators: `W2 relu(W1 z)`, for HyperFormer++ after a LayerNorm.

    z is float32 `[vectors, task embedding]`, for HyperFormer++ three times as wide. Without a
    projector the result is z.
    """
    own = values_with_prefix(values, PROJECTOR)
    if "down_kernel" in own:
        hidden = tf.nn.relu(dense(z, own["down_kernel"], own["down_bias"]))
        z = dense(hidden, own["up_kernel"], own["up_bias"])
    if "layer_norm_gamma" in own:
        z = layer_norm(z, own["layer_norm_gamma"], own["layer_norm_beta"], VECTOR_EPSILON)
    return z


def _generator_inputs(
    config: AdapterConfig, values: Mapping[str, Tensor], z: tf.Tensor
) -> dict[str, tuple[list[str], tf.Tensor]]:
    """Dict from the prefix of generators to the paths of their sublayers, and their input.

    A path is `layer_I/SUBLAYER`. The input is `[sublayers * tasks, vector]`: all tasks of the first
    sublayer, then those of the next.
    """
    matches = [LAYER.match(name) for name in values]
    layers = sorted({int(match[1]) for match in matches if match})
    paths = [f"layer_{i}/{sublayer}" for i in layers for sublayer in config.sublayers]
    if any(name.startswith(f"{SHARED}/") for name in values):
        wide = tf.concat([_with_path(values, z, path) for path in paths], 0)
        return {SHARED: (paths, project_embeddings(values, wide))}
    vectors = project_embeddings(values, z)
    return {f"{NAME}/{path}": ([path], vectors) for path in paths}


def _with_path(values: Mapping[str, Tensor], z: tf.Tensor, path: str) -> tf.Tensor:
    """The tasks' embeddings, each followed by those of a layer and a sublayer."""
    own = tf.concat([values[f"{NAME}/{part}/embedding"] for part in path.split("/")], 0)
    return tf.concat([z, tf.repeat(own[tf.newaxis], z.shape[0], 0)], -1)


def _generate(
    config: AdapterConfig, generators: Mapping[str, Tensor], vectors: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Dict from the name of an adapter's variable to `[vectors, ...]`, linear in the vectors."""
    shapes = config.variable_shapes(generators["up_bias/bias"].shape[0])
    return {
        name: tf.reshape(
            dense(vectors, generators[f"{name}/kernel"], generators[f"{name}/bias"]),
            [-1, *shape],
        )
        for name, shape in shapes.items()
        if f"{name}/kernel" in generators
    }


def _shared_norms(values: Mapping[str, Tensor], tasks: int) -> dict[str, tf.Tensor]:
    """Values of LayerNorms that are not generated, repeated for every task."""
    return {
        name.replace(NAME, "adapters", 1): tf.repeat(
            tf.convert_to_tensor(value)[tf.newaxis], tasks, 0
        )
        for name, value in values.items()
        if LAYER.match(name) and name.rsplit("/", 1)[1].startswith(f"{OUTPUT_NORM}_")
    }
