"""HyperFormer and HyperFormer++: a hypernetwork generates the adapters of each task."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from adapter_bert_tf.adapters.bottleneck_config import OUTPUT_NORM, AdapterConfig
from adapter_bert_tf.adapters.methods.multitask import TASK_IDS, TASKS, TaskAdaptersConfig
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import ROWS, Tensor, dense, layer_norm
from adapter_bert_tf.adapters.registry import module_for, register, require
from adapter_bert_tf.adapters.variable_specs import (
    Sizes,
    VariableSpec,
    dense_specs,
    values_with_prefix,
)
from adapter_bert_tf.lazy import tf

NAME = "hypernetwork"
SHARED = f"{NAME}/generators"  # Of HyperFormer++, for all sublayers.
PROJECTOR = f"{NAME}/projector"
VECTOR_EPSILON = 1e-6  # Of the LayerNorm of HyperFormer++ before the generators.
LAYER = re.compile(rf"{NAME}/layer_([0-9]+)/")
STARTS = ("identity", "published")
SCALE = 1e-2  # Standard deviation of all kernels at the start.
REDUCTION = 32  # Hidden size of the base divided by that of the bottleneck, in the paper.
MOST = 65_536
SIZES = ("task_embedding_size", "projector_size", "projected_size")
SWITCHES = ("shared", "projector", "conditional_norm")

_require = functools.partial(require, "HyperFormer")
_linear = functools.partial(dense_specs, group=NAME, start=SCALE, cut=False)


@register(NAME)
@dataclasses.dataclass(frozen=True)
class HyperFormerConfig(TaskAdaptersConfig):
    """HyperFormer, or with `shared` HyperFormer++ (Mahabadi et al. 2021, sections 2.2 and 2.3).

    Every task has an embedding. Generators, linear layers with biases, compute the adapters of the
    task from it: `A(x) = x + LayerNorm(U gelu(D x))`, including the LayerNorm's gamma and beta.

    Args:
      adapter, tasks: as of `TaskAdaptersConfig`; the adapter has `normalize_output`.
      shared: whether all sublayers have the same generators. These also read an embedding of the
        layer and one of the sublayer, through the projector and a LayerNorm.
      task_embedding_size, projector_size, projected_size: of the embeddings, of the projector's
        hidden layer, and of the input of the generators.
      projector: without it the generators read the embeddings (Table 4).
      conditional_norm: whether gamma and beta are generated; else those of a sublayer are the same
        for all tasks (Table 4).
      start: `published`: the generators are drawn with a standard deviation of 0.01; `identity`:
        those of gamma and beta are zero, so that the model starts as the base.
    """

    groups: ClassVar[tuple[str, ...]] = (NAME,)
    generates: ClassVar[bool] = True

    adapter: AdapterConfig
    shared: bool = False
    task_embedding_size: int = 64
    projector_size: int = 128
    projected_size: int = 64
    projector: bool = True
    conditional_norm: bool = True
    start: str = "identity"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_bottleneck = isinstance(self.adapter, AdapterConfig)
        _require(is_bottleneck, "adapter is an AdapterConfig", self.adapter)
        _require(self.adapter.normalize_output, "adapter needs normalize_output", self.adapter)
        _require(not self.adapter.layer_sizes, "adapters of all layers have one size", self.adapter)
        for name in SIZES:
            value = getattr(self, name)
            _require(type(value) is int and 0 < value <= MOST, f"{name} is 1 to {MOST}", value)
        for name in SWITCHES:
            value = getattr(self, name)
            _require(isinstance(value, bool), f"{name} is true or false", value)
        _require(self.start in STARTS, f"start is one of {STARTS}", self.start)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """The tasks' embeddings, the projector, the generators."""
        shapes = self.adapter.variable_shapes(sizes["hidden_size"])
        norms = {n: shape for n, shape in shapes.items() if n.startswith(f"{OUTPUT_NORM}_")}
        if not self.conditional_norm:
            shapes = {name: shape for name, shape in shapes.items() if name not in norms}
        specs = self._embeddings(sizes) | self._projector()
        if self.shared:
            specs |= self._generators(SHARED, shapes, None)
        for layer in self.adapter.layer_indices(sizes["num_layers"]):
            for sublayer in self.adapter.sublayers:
                prefix = f"{NAME}/layer_{layer}/{sublayer}"
                if not self.shared:
                    specs |= self._generators(prefix, shapes, layer)
                if not self.conditional_norm:
                    specs |= {
                        f"{prefix}/{name}": VariableSpec(shape, NAME, layer, self._norm_start(name))
                        for name, shape in norms.items()
                    }
        return specs

    def _embeddings(self, sizes: Sizes) -> dict[str, VariableSpec]:
        names: list[tuple[str, int | None]] = [
            (f"{TASKS}/{task}/{NAME}", None) for task in self.tasks
        ]
        if self.shared:
            layers = self.adapter.layer_indices(sizes["num_layers"])
            names += [(f"{NAME}/layer_{i}", i) for i in layers]
            names += [(f"{NAME}/{sublayer}", None) for sublayer in self.adapter.sublayers]
        shape = (self.task_embedding_size,)
        return {
            f"{n}/embedding": VariableSpec(shape, NAME, layer, 1.0, cut=False) for n, layer in names
        }

    def _projector(self) -> dict[str, VariableSpec]:
        specs: dict[str, VariableSpec] = {}
        if self.projector:
            specs |= _linear(f"{PROJECTOR}/down_", (self._embedding_size,), (self.projector_size,))
            specs |= _linear(f"{PROJECTOR}/up_", (self.projector_size,), (self.projected_size,))
        if self.shared:
            shape = (self.vector_size,)
            specs[f"{PROJECTOR}/layer_norm_gamma"] = VariableSpec(shape, NAME, start="ones")
            specs[f"{PROJECTOR}/layer_norm_beta"] = VariableSpec(shape, NAME)
        return specs

    @property
    def vector_size(self) -> int:
        """Size of the input of the generators."""
        return self.projected_size if self.projector else self._embedding_size

    @property
    def _embedding_size(self) -> int:
        """Size of the embeddings that the projector reads: of task, layer and sublayer."""
        return self.task_embedding_size * (3 if self.shared else 1)

    def _generators(
        self, prefix: str, shapes: Mapping[str, tuple[int, ...]], layer: int | None
    ) -> dict[str, VariableSpec]:
        specs: dict[str, VariableSpec] = {}
        for name, shape in shapes.items():
            at_zero = self.start == "identity" and name.startswith(f"{OUTPUT_NORM}_")
            sizes, start = (math.prod(shape),), "zeros" if at_zero else SCALE
            specs |= _linear(
                f"{prefix}/{name}/", (self.vector_size,), sizes, layer=layer, start=start
            )
        return specs

    def _norm_start(self, name: str) -> str:
        return "ones" if name.endswith("gamma") and self.start == "published" else "zeros"

    def values_by_task(self, values: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
        adapters = generate_adapters(self.adapter, self.tasks, values)
        return {
            task: {name: tensor[i] for name, tensor in adapters.items()}
            for i, task in enumerate(self.tasks)
        }

    def summary(self) -> str:
        name = "HyperFormer++" if self.shared else "HyperFormer"
        return f"{name} of {', '.join(self.tasks)}, which makes: {self.adapter.summary()}"


@module_for(HyperFormerConfig)
class HyperFormerModule(AdapterModule):
    """Generates the adapters of all tasks; the inputs of a call have `task_ids`, `[batch]`."""

    config: HyperFormerConfig

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        """The adapter of each row's task."""
        adapters = generate_adapters(self.config.adapter, self.config.tasks, self.values)
        rows = {name: tf.gather(value, inputs[TASK_IDS]) for name, value in adapters.items()}
        return self.config.adapter.module(rows, self.dropouts, ROWS)


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
