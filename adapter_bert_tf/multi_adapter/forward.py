"""The compiled passes of a shared encoder: one for each kind of parts and head that tasks have."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.modules import FROZEN_OUTPUT
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import head_of
from adapter_bert_tf.multi_adapter.fusions import logits_together, together
from adapter_bert_tf.multi_adapter.live_task import LiveTask
from adapter_bert_tf.multi_adapter.mixed import Group, pass_key, put_together, stack
from adapter_bert_tf.multi_adapter.shared import Shared, frozen_layers, shared_layers
from adapter_bert_tf.store import contents

Key = tuple[str, str, int]


class ForwardPasses:
    """Computes tasks with one encoder; weights are arguments of the passes.

    Args:
      encoder: `AdapterBertEncoder`, which all tasks share.
    """

    def __init__(self, encoder: AdapterBertEncoder) -> None:
        self.encoder = encoder
        self._functions: dict[Key, Callable[..., Any]] = {}

    def one(self, task: LiveTask, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Logits of all rows by one task."""
        if not task.shares_base:
            return task.model()(inputs)
        values = {name: tf.convert_to_tensor(value) for name, value in task.values.items()}
        return self._function(task.config)(inputs, values)

    def by_row(
        self, names: Sequence[str], tasks: Mapping[str, LiveTask], inputs: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """Logits of each row by the task of its name. Raises `InputError`."""
        if len({head_of(task.config).logits for task in tasks.values()}) > 1:
            raise InputError(
                "Spans and classes cannot be in one batch. Received: "
                f"{ {name: task.config['head'] for name, task in tasks.items()} }"
            )
        groups: dict[tuple[str, ...], Group] = {}
        for row, name in enumerate(names):
            task = tasks[name]
            key = pass_key(task.config, name) if task.shares_base else (name,)
            groups.setdefault(key, Group([], [])).add(row, task)
        found = list(groups.values())
        shared = shared_layers([tasks[name] for name in names], inputs, self._frozen)
        return put_together(found, [self._group(group, inputs, shared) for group in found])

    def with_members(
        self, name: str, task: LiveTask, inputs: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Logits of a fusion and of its members, by name. Raises `InputError`."""
        tasks = together(name, task)
        configs = [config for config, _ in tasks.values()]
        described = [(config["adapter"], config["head"]) for config in configs]
        run = functools.partial(logits_together, self.encoder, configs)
        function = self._kept((repr(described), "with members", 0), run)
        return dict(zip(tasks, function(inputs, [v for _, v in tasks.values()]), strict=True))

    def forget_all_but(self, tasks: Iterable[LiveTask]) -> None:
        """Lets go of the passes that none of the tasks needs."""
        used = {_key(task.config) for task in tasks}
        used |= {("", "frozen", frozen_layers(task)) for task in tasks}
        self._functions = {key: f for key, f in list(self._functions.items()) if key in used}

    def _frozen(self, layers: int, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """What the base's lowest layers give."""
        run = functools.partial(self.encoder.frozen, frozen_layers=layers)
        return self._kept(("", "frozen", layers), run)(inputs)

    def _group(
        self, group: Group, inputs: Mapping[str, tf.Tensor], shared: Mapping[int, Shared]
    ) -> tf.Tensor:
        inputs = {name: tf.gather(value, group.rows) for name, value in inputs.items()}
        first, *others = group.tasks
        if (layers := frozen_layers(first)) in shared:
            inputs[FROZEN_OUTPUT] = shared[layers].of(group.rows)
        if not others:
            return self.one(first, inputs)
        values = stack([task.values for task in group.tasks], self.encoder.base_variables())
        # Where each row has a task of its own they are in the order of the rows already.
        which = tf.constant(group.which) if len(group.tasks) < len(group.rows) else None
        return self._function(first.config)(inputs, values, which, ROWS)

    def _function(self, config: Mapping[str, Any]) -> Callable[..., tf.Tensor]:
        """The compiled pass for a kind of head and of parts."""
        adapter, head = contents.adapter_of(config), head_of(config)
        frozen = contents.tuning_of(config).frozen_layers
        encoder: Any = self.encoder
        if frozen:
            encoder = functools.partial(encoder, frozen_layers=frozen)

        def run(
            inputs: dict[str, tf.Tensor],
            values: dict[str, tf.Tensor],
            which: tf.Tensor | None = None,
            stacked: str | None = None,
        ) -> tf.Tensor:
            if which is not None:
                values = {name: tf.gather(value, which) for name, value in values.items()}
            return head.logits_of(encoder, inputs, adapter, values, stacked)

        return self._kept(_key(config), run)

    def _kept(self, key: Key, run: Callable[..., Any]) -> Callable[..., Any]:
        function = self._functions.get(key)
        if function is None:  # Another thread may delete the last task of a kind meanwhile.
            function = self._functions[key] = tf.function(
                run, reduce_retracing=True, autograph=False
            )
        return function


def _key(config: Mapping[str, Any]) -> Key:
    return repr(config["adapter"]), config["head"], contents.tuning_of(config).frozen_layers
