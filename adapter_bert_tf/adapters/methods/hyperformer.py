"""HyperFormer and HyperFormer++: a hypernetwork generates the adapters of each task."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import ClassVar

import tensorflow as tf

from adapter_bert_tf.adapters.config import OUTPUT_NORM
from adapter_bert_tf.adapters.methods.hypernetwork import (
    NAME,
    PROJECTOR,
    SHARED,
    generate_adapters,
)
from adapter_bert_tf.adapters.methods.multitask import TASK_IDS, TASKS, TaskAdaptersConfig
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import ROWS, Tensor
from adapter_bert_tf.adapters.registry import module_for, register, require
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec

STARTS = ("identity", "published")
SCALE = 1e-2  # Standard deviation of all kernels at the start.
REDUCTION = 32  # Hidden size of the base divided by that of the bottleneck, in the paper.
MOST = 65_536
SIZES = ("task_embedding_size", "projector_size", "projected_size")
SWITCHES = ("shared", "projector", "conditional_norm")

_require = functools.partial(require, "HyperFormer")


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

    shared: bool = False
    task_embedding_size: int = 64
    projector_size: int = 128
    projected_size: int = 64
    projector: bool = True
    conditional_norm: bool = True
    start: str = "identity"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.adapter.normalize_output, "adapter needs normalize_output", self.adapter)
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
            specs |= _linear(f"{PROJECTOR}/down_", self._embedding_size, self.projector_size)
            specs |= _linear(f"{PROJECTOR}/up_", self.projector_size, self.projected_size)
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
            start, size = "zeros" if at_zero else SCALE, math.prod(shape)
            specs |= _linear(f"{prefix}/{name}/", self.vector_size, size, layer, start)
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


def _linear(
    prefix: str, inputs: int, outputs: int, layer: int | None = None, start: str | float = SCALE
) -> dict[str, VariableSpec]:
    return {
        f"{prefix}kernel": VariableSpec((inputs, outputs), NAME, layer, start, cut=False),
        f"{prefix}bias": VariableSpec((outputs,), NAME, layer),
    }
