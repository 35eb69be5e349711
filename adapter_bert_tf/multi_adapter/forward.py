"""Compiled forward passes of a shared encoder, one for each combination of modules and head."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.modules import FROZEN_OUTPUT
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.errors import Conflict
from adapter_bert_tf.multi_adapter.compiled_pass import CompiledPass, TracedPass
from adapter_bert_tf.multi_adapter.fusions import fusion_and_members, joint_logits
from adapter_bert_tf.multi_adapter.live_task import LiveTask
from adapter_bert_tf.multi_adapter.mixed import (
    Inputs,
    RowGroup,
    SharedOutputs,
    group_key,
    merge_outputs,
    shared_layers,
    stack_weights,
)
from adapter_bert_tf.store import contents
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.training.device.compilation import compiles_by_default

Key = tuple[str, str, int]


class ForwardPasses:
    """Compiled forward passes of an encoder; the weights of a task are arguments.

    On a GPU, XLA compiles those of single tasks, once they come often.
    """

    def __init__(self, encoder: AdapterBertEncoder) -> None:
        self.encoder, self._uses_xla = encoder, compiles_by_default()
        self._functions: dict[tuple[Key, str], Callable[..., Any]] = {}

    def single(self, task: LiveTask, inputs: Inputs) -> tf.Tensor:
        """Computes the logits of all rows with one task."""
        if not task.shares_base:
            return task.model()(inputs)
        values = {name: tf.convert_to_tensor(value) for name, value in task.values.items()}
        return self._function(task.config)(inputs, values)

    def mixed(
        self, names: Sequence[str], tasks: Mapping[str, LiveTask], inputs: Inputs
    ) -> tf.Tensor:
        """Computes the logits of each row with the task of its name. Raises `InputError`."""
        if len({type_of(task.config).logits for task in tasks.values()}) > 1:
            raise Conflict(
                "Tasks of these types cannot be in one batch. Received: "
                f"{ {name: task.config['head'] for name, task in tasks.items()} }"
            )
        groups: dict[tuple[Any, ...], RowGroup] = {}
        for row, name in enumerate(names):
            task = tasks[name]
            key = group_key(task.config, name) if task.shares_base else (name,)
            groups.setdefault(key, RowGroup()).add(row, task)
        shared = shared_layers([tasks[name] for name in names], inputs, self._frozen)
        outputs = [self._group(group, inputs, shared) for group in groups.values()]
        return merge_outputs(list(groups.values()), outputs)

    def with_members(self, name: str, task: LiveTask, inputs: Inputs) -> dict[str, tf.Tensor]:
        """Computes the logits of a fusion and of its members, by name. Raises `InputError`."""
        tasks = fusion_and_members(name, task)
        configs = [config for config, _ in tasks.values()]
        descriptions = [(config["adapter"], config["head"]) for config in configs]
        run = functools.partial(joint_logits, self.encoder, configs)
        function = self._cached((repr(descriptions), "with members", 0), run)
        return dict(zip(tasks, function(inputs, [v for _, v in tasks.values()]), strict=True))

    def drop_unused(self, tasks: Iterable[LiveTask]) -> None:
        """Removes the passes that no task uses."""
        used_keys = {contents.computation(task.config) for task in tasks}
        used_keys |= {("", "frozen", task.shared_depth) for task in tasks}
        functions = list(self._functions.items())
        self._functions = {key: f for key, f in functions if key[0] in used_keys}

    def _frozen(self, layers: int, inputs: Inputs) -> tf.Tensor:
        """Computes the base's lowest layers."""
        run = functools.partial(self.encoder.frozen_output, frozen_layers=layers)
        return self._cached(("", "frozen", layers), run)(inputs)

    def _group(
        self, group: RowGroup, inputs: Inputs, shared: Mapping[int, SharedOutputs]
    ) -> tf.Tensor:
        group_inputs = {name: tf.gather(value, group.rows) for name, value in inputs.items()}
        first, *others = group.tasks
        if first.shared_depth in shared:
            group_inputs[FROZEN_OUTPUT] = shared[first.shared_depth].gather(group.rows)
        if not others:
            return self.single(first, group_inputs)
        values = stack_weights([task.values for task in group.tasks], self.encoder.base_variables())
        # If each row has a task of its own, the tasks are already in the order of the rows.
        if len(group.tasks) == len(group.rows):
            return self._function(first.config, "ordered")(group_inputs, values)
        run = self._function(first.config, "gathered")
        return run(group_inputs, values, tf.constant(group.task_indices))

    def _function(self, config: Mapping[str, Any], variant: str = "") -> Callable[..., tf.Tensor]:
        """Returns the compiled pass for a combination of modules and head."""
        adapter, kind = contents.adapter_of(config), type_of(config)
        frozen = contents.tuning_of(config).frozen_layers
        encoder: Any = self.encoder
        if frozen:
            encoder = functools.partial(encoder, frozen_layers=frozen)

        def run(
            inputs: dict[str, tf.Tensor],
            values: dict[str, tf.Tensor],
            task_indices: tf.Tensor | None = None,
        ) -> tf.Tensor:
            stacked = ROWS if variant else None
            if task_indices is not None:
                values = {name: tf.gather(value, task_indices) for name, value in values.items()}
            return kind.logits_of(encoder, inputs, adapter, values, stacked)

        if self._uses_xla and not variant:
            longest = self.encoder.config["max_sequence_length"]
            xla = functools.partial(CompiledPass, longest=longest, cut=kind.without_padding)
            return self._cached(contents.computation(config), run, make=xla)
        traced = functools.partial(TracedPass, stacked=bool(variant))
        return self._cached(contents.computation(config), run, variant, traced)

    def _cached(
        self,
        key: Key,
        run: Callable[..., Any],
        variant: str = "",
        make: Callable[..., Any] = TracedPass,
    ) -> Callable[..., Any]:
        """Returns the compiled function of a key; a variant of it has arguments of other types."""
        function = self._functions.get((key, variant))
        if function is None:  # Another thread may concurrently remove the pass.
            function = make(run)
            self._functions[key, variant] = function
        return function
