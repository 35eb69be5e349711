"""Many tasks on one frozen base, each with a small set of weights of its own."""

import copy
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.kinds import PartsConfig
from adapter_bert_tf.adapters.ops import ROWS, Tensor
from adapter_bert_tf.adapters.specs import POOLER
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base import Base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import HEADS, head_of
from adapter_bert_tf.heads.task_model import TaskModel
from adapter_bert_tf.many_tasks.live_task import LiveTask
from adapter_bert_tf.many_tasks.mixed import Group, pass_key, put_together, stack
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.combine import without_lowest
from adapter_bert_tf.store.directory import check_base, load_adapter, save_adapter
from adapter_bert_tf.store.place import require_same_task
from adapter_bert_tf.training.trained import Tuning, is_trained, select_trained


class AdapterModel:
    """A base, read once, and the adapters of any number of tasks.

    No adapter is ever "active": each call names the one it means, or one for each row. Training one
    task changes no other, and not the base.

    Args:
      base: `Base`.
    """

    def __init__(self, base: Base) -> None:
        self.base = base
        self.encoder = base.build_encoder()
        self.encoder.trainable = False
        self._tasks: dict[str, LiveTask] = {}
        self._functions: dict[tuple[str, str], Callable[..., tf.Tensor]] = {}

    def add_adapter(
        self,
        name: str,
        labels: Sequence[str] = (),
        config: str | PartsConfig | None = "houlsby",
        head: str = "classification",
        tuning: Tuning | None = None,
        **inputs: int,
    ) -> TaskModel:
        """Adds a task with fresh weights.

        Args:
          name: of the task.
          labels: label strings in the order of their ids; none for regression.
          config: name of a preset, a `PartsConfig`, or None with a tuning that needs none.
          head: `classification` or `span`.
          tuning: `Tuning`; None for adapters and LayerNorms.
          **inputs: how texts become inputs, where it differs from the head's own: `texts`, 2 for
            pairs, and `max_seq_length`.

        Returns:
          `tf_keras.Model`, to be compiled and fitted. It trains what `tuning` says and nothing
          that another task uses. What its training takes in memory is given back when you drop
          it; the weights stay here.

        Raises:
          InputError: when the name is taken, or something is out of range.
        """
        self._require_new_name(name)
        tuning = tuning or Tuning()
        adapter = _adapter_config(config)
        fixed = HEADS[head].labels if head in HEADS else None
        labels = _strings(labels, "Labels are") if fixed is None else fixed
        described = schema.describe(
            name,
            labels,
            self.base.fingerprint(),
            tuning,
            adapter if tuning.needs_adapter else None,
            head,
            inputs,
        )
        checks.check(described, f"Adapter {name!r}")
        self._tasks[name], model = self._with_model(described, {})
        return model

    def load_adapter(
        self, folder: str | os.PathLike[str], name: str | None = None, drop_lowest: int = 0
    ) -> str:
        """Adds the task of an adapter directory, and returns its name.

        Args:
          folder: of `save_adapter`, or of a training run.
          name: None for the task's own; `save_adapter` keeps it.
          drop_lowest: number of lowest layers whose adapters are left out (AdapterDrop, Rücklé et
            al. 2021).

        Raises:
          InputError: when the name is taken, the directory is damaged, or the base another one.
        """
        saved = without_lowest(load_adapter(os.fspath(folder)), drop_lowest)
        name = name or contents.name_of(saved.config)
        self._require_new_name(name)
        check_base(saved.config, self.base.fingerprint())
        config = contents.named(saved.config, name)
        values = {key: tf.constant(value) for key, value in saved.weights.items()}
        task = LiveTask(config, values)
        if not task.shares_base:
            task, _ = self._with_model(config, values)
        self._tasks[name] = task
        return name

    def save_adapter(
        self,
        name: str,
        folder: str | os.PathLike[str],
        metric: Mapping[str, Any] | None = None,
        dtype: str = "float32",
        overwrite: bool = False,
    ) -> None:
        """Writes a task's adapter directory; see `store.save_adapter`.

        Args:
          name: of the task.
          folder: path.
          metric: dict with `name`, `value` and `split`, for the card. None: what it was loaded
            with, unless it was trained since.
          dtype: of the file.
          overwrite: whether an adapter of another name or other labels may be replaced.

        Raises:
          InputError: when another adapter is there, or something else.
        """
        task = self._find(name)
        described = task.described()
        config = described | {"metric": metric or described["metric"]}
        config.pop("run", None)  # What is saved here may have been trained further.
        if not overwrite:
            require_same_task(os.fspath(folder), config)
        save_adapter(os.fspath(folder), config, task.values, dtype)

    def list_adapters(self) -> list[str]:
        """Names of the tasks, in the order in which they came."""
        return list(self._tasks)

    def delete_adapter(self, name: str) -> None:
        """Removes a task. Raises `InputError` if there is none of that name."""
        self._find(name)
        self._tasks.pop(name, None)
        used = {_function_key(task.config) for task in list(self._tasks.values())}
        self._functions = {key: f for key, f in list(self._functions.items()) if key in used}

    def config(self, name: str) -> dict[str, Any]:
        """What the adapter directory of a task says: labels, sizes, metric, base."""
        return copy.deepcopy(self._find(name).described())

    def model(self, name: str) -> TaskModel:
        """The `tf_keras.Model` that trains a task further; its training changes this object."""
        task = self._find(name)
        model = task.model()
        if model is None:
            self._tasks[name], model = self._with_model(task.described(), task.values)
        return model

    def __call__(self, inputs: Mapping[str, Any], adapter: str | Sequence[str]) -> tf.Tensor:
        """Logits of a batch.

        Args:
          inputs: dict of int32 `[batch, seq]`: `input_word_ids`, `input_mask`, `input_type_ids`;
            see `TextEncoder.inputs`.
          adapter: a task's name, or a sequence of `batch` names, one for each row.

        Returns:
          float32 `[batch, labels]`; of several tasks as many columns as the one with most labels
          has, -inf where a row's task has fewer. `[batch, 2, seq]` for spans.

        Raises:
          InputError: for an unknown name, a wrong number of names, or both kinds of heads at once.
        """
        inputs = {name: tf.convert_to_tensor(value, tf.int32) for name, value in inputs.items()}
        if isinstance(adapter, str):
            return self._run(self._find(adapter), inputs)
        names = _strings(adapter, "An adapter is a name, or for several rows")
        groups = self._groups(names, inputs["input_word_ids"].shape[0])
        return put_together(groups, [self._run_group(group, inputs) for group in groups])

    def _groups(self, names: list[str], batch: int) -> list[Group]:
        """The rows that one pass of the encoder can compute together, as `Group`s."""
        if not names or len(names) != batch:
            raise InputError(
                "One adapter a row, and at least one row. Received: "
                f"{len(names)} names for {batch} rows."
            )
        tasks = {name: self._find(name) for name in dict.fromkeys(names)}
        if len({task.config["head"] for task in tasks.values()}) > 1:
            raise InputError(
                "Spans and classes cannot be in one batch. Received: "
                f"{ {name: task.config['head'] for name, task in tasks.items()} }"
            )
        groups: dict[tuple[str, ...], Group] = {}
        for row, name in enumerate(names):
            task = tasks[name]
            key = pass_key(task.config, name) if task.shares_base else (name,)
            groups.setdefault(key, Group([], [])).add(row, task)
        return list(groups.values())

    def _run_group(self, group: Group, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        inputs = {name: tf.gather(value, group.rows) for name, value in inputs.items()}
        first, *others = group.tasks
        if not others:
            return self._run(first, inputs)
        values = stack([task.values for task in group.tasks], self.encoder.base_variables())
        return self._function(first.config)(inputs, values, tf.constant(group.which))

    def _run(self, task: LiveTask, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        if not task.shares_base:
            return task.model()(inputs)
        values = {name: tf.convert_to_tensor(value) for name, value in task.values.items()}
        return self._function(task.config)(inputs, values)

    def _function(self, config: Mapping[str, Any]) -> Callable[..., tf.Tensor]:
        """The compiled pass for a kind of head and of parts; weights are its arguments."""
        adapter, head = contents.adapter_of(config), head_of(config)
        key = _function_key(config)

        def run(
            inputs: dict[str, tf.Tensor],
            values: dict[str, tf.Tensor],
            which: tf.Tensor | None = None,
        ) -> tf.Tensor:
            if which is not None:
                values = {name: tf.gather(value, which) for name, value in values.items()}
            stacked = None if which is None else ROWS
            return head.logits_of(self.encoder, inputs, adapter, values, stacked)

        function = self._functions.get(key)
        if function is None:  # Another thread may delete the last task of a kind meanwhile.
            function = self._functions[key] = tf.function(run, reduce_retracing=True)
        return function

    def _with_model(
        self, config: dict[str, Any], values: Mapping[str, Tensor]
    ) -> tuple[LiveTask, TaskModel]:
        """The `LiveTask` and a model that trains it, starting from `values` if there are any."""
        tuning = contents.tuning_of(config)
        encoder = self._encoder_of(contents.adapter_of(config), tuning)
        model = head_of(config).new_model(encoder, contents.num_outputs(config))
        select_trained(model, tuning)
        kept = contents.kept_variables(model, tuning)
        for name, value in values.items():
            kept[name].assign(value)
        found = (lambda: model) if tuning.changes_base else weakref.ref(model)
        return LiveTask(config, kept, found), model

    def _encoder_of(
        self, adapter: PartsConfig | None, tuning: Tuning
    ) -> AdapterBertEncoder | TaskEncoder:
        """An encoder that shares of the base what the tuning leaves alone."""
        if tuning.changes_base:
            return self.base.build_encoder()
        specs, depth = self.encoder.specs(), self.encoder.config["num_layers"]
        return TaskEncoder(
            self.encoder,
            adapter,
            own_norms=is_trained(specs["bert/embeddings/LayerNorm/gamma"], depth, tuning),
            own_pooler=is_trained(specs[f"{POOLER}/kernel"], depth, tuning),
        )

    def _find(self, name: str) -> LiveTask:
        task = self._tasks.get(name)
        if task is None:
            raise InputError(f"No adapter {name!r}. There are {self.list_adapters()}.")
        return task

    def _require_new_name(self, name: str) -> None:
        if not name or not isinstance(name, str) or name in self._tasks:
            raise InputError(
                f"An adapter needs a name that no other has: {self.list_adapters()}. "
                f"Received: {name!r}"
            )


def _function_key(config: Mapping[str, Any]) -> tuple[str, str]:
    return repr(config["adapter"]), config["head"]


def _adapter_config(config: str | PartsConfig | None) -> PartsConfig | None:
    if isinstance(config, str) and config in PRESETS:
        return PRESETS[config]
    if config is None or isinstance(config, PartsConfig):
        return config
    raise InputError(
        f"config is one of {list(PRESETS)}, a configuration such as AdapterConfig, or None. "
        f"Received: {config!r}"
    )


def _strings(values: Any, what: str) -> list[str]:
    if isinstance(values, list | tuple) and all(isinstance(value, str) for value in values):
        return list(values)
    raise InputError(f"{what} a list of strings. Received: {values!r}")
