"""Many tasks on one frozen base, each with its own small set of weights."""

import copy
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import Base, load_base
from adapter_bert_tf.errors import InputError, NotFound, require_bools
from adapter_bert_tf.heads.task_model import TaskModel
from adapter_bert_tf.multi_adapter.forward import ForwardPasses
from adapter_bert_tf.multi_adapter.fusions import resolve_members
from adapter_bert_tf.multi_adapter.inputs import check_name, encoder_inputs, require_strings
from adapter_bert_tf.multi_adapter.live_task import LiveTask, describe_task, make_encoder
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.adapter_dir import require_same_task
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.checks import plain_metric
from adapter_bert_tf.store.combining.combine import drop_lowest_layers
from adapter_bert_tf.store.combining.stacking import below_of, with_below
from adapter_bert_tf.store.directory import load_adapter, save_adapter
from adapter_bert_tf.store.members import Member, make_fusion_config, member_values, update_members
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.training.device.devices import prepare_gpus
from adapter_bert_tf.training.tuning import Tuning, select_trained


class AdapterModel:
    """A base and the adapters of any number of tasks.

    There is no "active" adapter: each call names one adapter, or one for each row. Training a task
    changes neither other tasks nor the base.

    Args:
      base: `Base`, or an argument of `load_base`. Raises `InputError` if it does not exist.
    """

    def __init__(self, base: Base | str | os.PathLike[str] | None = None) -> None:
        if not isinstance(base, Base):
            base = load_base(None if base is None else storage.path_of(base))
        self.base = base
        prepare_gpus()
        self.encoder = self.base.build_encoder()
        self.encoder.trainable = False
        self._tasks: dict[str, LiveTask] = {}
        self._passes = ForwardPasses(self.encoder)

    def add_adapter(
        self,
        name: str,
        labels: Sequence[str] = (),
        config: str | ModuleConfig | None = "houlsby",
        head: str = "classification",
        tuning: Tuning | None = None,
        stack: str | os.PathLike[str] | None = None,
        **inputs: Any,
    ) -> TaskModel:
        """Adds a task with fresh weights.

        Args:
          name: name of the task.
          labels: label strings in the order of their ids, if the task's type has labels.
          config: name of a preset, a `ModuleConfig`, or None with a tuning without modules.
          head: name of the task type, a key of `TASK_TYPES`; without labels `classification`
            stands for scores.
          tuning: `Tuning`; None for adapters and LayerNorms.
          stack: folder of an adapter, of a language for example, that stays frozen below this one.
          **inputs: of the type's `inputs`, such as `texts`, 2 for pairs, and `max_seq_length`; the
            labels decide others, such as the `scheme` of tags.

        Returns:
          `tf_keras.Model` to compile and fit, which trains the variables that `tuning` selects.
          Dropping it frees the memory of its training; the weights stay in this object.

        Raises:
          InputError: when the name exists, or a value is out of range.
        """
        check_name(name, self.list_adapters())
        tuning = Tuning() if tuning is None else tuning
        below = below_of(stack, self.base.fingerprint())
        task_config = describe_task(name, labels, self.base, config, head, tuning, inputs, below)
        adapter = contents.adapter_of(task_config)
        values = member_values(adapter, below) if adapter and below else {}
        self._tasks[name], model = self._make_task(task_config, values, below)
        return model

    def add_fusion(
        self,
        name: str,
        members: Sequence[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]],
        labels: Sequence[str] = (),
        head: str = "classification",
        tuning: Tuning | None = None,
        cooling_steps: int = 0,
        **inputs: Any,
    ) -> TaskModel:
        """Adds a task that attends to copies of adapters of other tasks (Pfeiffer et al. 2021).

        Args:
          name: name of the task.
          members: names of adapters of this model or adapter directories; or a dict from a name in
            the fusion to one of these.
          labels, head, **inputs: as in `add_adapter`.
          tuning: None for `Tuning("fusion")`; `train_members=True` also trains the members.
          cooling_steps: as in `FusionConfig`.

        Returns:
          `tf_keras.Model`, as from `add_adapter`. Its losses keep the values near the identity.

        Raises:
          InputError: when the name exists, members cannot be fused, or a value is out of range.
        """
        check_name(name, self.list_adapters())
        resolved = resolve_members(members, dict(self._tasks), self.base.fingerprint())
        config = make_fusion_config(resolved, cooling_steps)
        tuning = Tuning("fusion") if tuning is None else tuning
        if not isinstance(tuning, Tuning) or tuning.method != "fusion":
            raise InputError(
                f'The tuning of a fusion must be Tuning("fusion", ...). Received: {tuning!r}'
            )
        task_config = describe_task(name, labels, self.base, config, head, tuning, inputs, resolved)
        self._tasks[name], model = self._make_task(
            task_config, member_values(config, resolved), resolved
        )
        return model

    def load_adapter(
        self,
        folder: str | os.PathLike[str],
        name: str | None = None,
        drop_lowest: int = 0,
        stack: str | os.PathLike[str] | None = None,
    ) -> str:
        """Adds the task of an adapter directory; returns its name.

        Args:
          folder: folder of `save_adapter` or of a training run.
          name: new name, which `save_adapter` stores; None for the stored name.
          drop_lowest: number of lowest layers whose adapters are dropped (AdapterDrop, Rücklé et
            al. 2021).
          stack: folder of the adapter below it, for one that was trained on top of another: the
            same one, or that of another language.

        Raises:
          InputError: when the name exists, the directory is damaged, or the base differs.
        """
        path = storage.path_of(folder)
        saved = drop_lowest_layers(load_adapter(path), drop_lowest)
        require_one_task(saved.config, path)
        (below,) = below_of(stack) or (None,)
        saved = with_below(saved, below, repr(path))
        is_stored = name is None
        name = contents.name_of(saved.config) if name is None else name
        check_name(name, self.list_adapters(), is_stored)
        base = self.base if self._tasks else self.base.for_adapter(saved.config["base"])
        check_base(saved.config, base.fingerprint())
        self.base = base
        config = contents.named(saved.config, name)
        # A constant also keeps the array that it was made from; `identity` saves half the memory.
        values = {key: tf.identity(tf.constant(value)) for key, value in saved.weights.items()}
        task = LiveTask(config, values, members=saved.members)
        if not task.shares_base:
            task, _ = self._make_task(config, values, saved.members)
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
          name: name of the task.
          folder: path.
          metric: dict with `name`, `value` and `split`, for the card; None for the loaded metric,
            unless the task was trained since.
          dtype: dtype of the stored weights.
          overwrite: whether to replace an adapter with another name or other labels.

        Raises:
          InputError: when the folder has another adapter or other files.
        """
        require_bools(overwrite=overwrite)
        task, path = self._require_task(name), storage.path_of(folder)
        task_config = task.current_config()
        config = task_config | {"metric": plain_metric(metric) or task_config["metric"]}
        config.pop("run", None)  # The weights may have changed since the run.
        if not overwrite:
            require_same_task(path, config)
        members = update_members(task.members, task.values)
        save_adapter(path, config, task.values, dtype, members)

    def list_adapters(self) -> list[str]:
        """Returns the names of the tasks, in the order of their addition."""
        return list(self._tasks)

    def delete_adapter(self, name: str) -> None:
        """Removes a task. Raises `InputError` for an unknown name."""
        self._require_task(name)
        self._tasks.pop(name, None)
        self._passes.drop_unused(list(self._tasks.values()))

    def config(self, name: str) -> dict[str, Any]:
        """Returns the config of a task's adapter directory: labels, sizes, metric, base."""
        task = self._require_task(name)
        config = copy.deepcopy(task.current_config())
        members = update_members(task.members, task.values)
        digests = [member.config["sha256"] for member in members]
        return config | ({"members": digests} if members else {})

    def model(self, name: str) -> TaskModel:
        """Returns the `tf_keras.Model` that trains a task; training changes this object."""
        task = self._require_task(name)
        model = task.model()
        if model is None:
            self._tasks[name], model = self._make_task(
                task.current_config(), task.values, task.members
            )
        return model

    def __call__(self, inputs: Mapping[str, Any], adapter: str | Sequence[str]) -> tf.Tensor:
        """Computes the logits of a batch.

        Args:
          inputs: dict of int32 `[batch, seq]`: `input_word_ids`, `input_mask`, `input_type_ids`;
            see `TextEncoder.inputs`.
          adapter: a task's name, or a sequence of `batch` names, one for each row.

        Returns:
          float32 `[batch, labels]`, `[batch, 2, seq]` for spans, or `[batch, seq, tags]`. With
          several tasks, rows of a task with fewer labels are padded with -inf.

        Raises:
          InputError: for an unknown name, a wrong number of names, or types that do not mix.
        """
        inputs = encoder_inputs(inputs, self.base.config)
        if isinstance(adapter, str):
            return self._passes.single(self._require_task(adapter), inputs)
        names = require_strings(adapter, "adapter must be a name or")
        batch = inputs["input_word_ids"].shape[0]
        if not names or len(names) != batch:
            raise InputError(
                "adapter must have one name for each row, and at least one. Received: "
                f"{len(names)} names for {batch} rows."
            )
        tasks = {name: self._require_task(name) for name in dict.fromkeys(names)}
        return self._passes.mixed(names, tasks, inputs)

    def with_members(self, inputs: Mapping[str, Any], name: str) -> dict[str, tf.Tensor]:
        """Computes the logits of a fusion and of its members, by name, in one pass of the base.

        Raises `InputError` for a task that is not a fusion.
        """
        task = self._require_task(name)
        return self._passes.with_members(name, task, encoder_inputs(inputs, self.base.config))

    def _make_task(
        self,
        config: dict[str, Any],
        values: Mapping[str, Tensor],
        members: tuple[Member, ...] = (),
    ) -> tuple[LiveTask, TaskModel]:
        """Makes a `LiveTask` and the model that trains it, with `values` as initial weights."""
        tuning = contents.tuning_of(config)
        encoder = make_encoder(self.base, self.encoder, contents.adapter_of(config), tuning)
        model = type_of(config).new_model(encoder, contents.num_outputs(config))
        select_trained(model, tuning)
        variables = contents.kept_variables(model, tuning, contents.adapter_of(config))
        for name, value in values.items():
            variables[name].assign(value)
        model_reference = (lambda: model) if tuning.changes_base else weakref.ref(model)
        return LiveTask(config, variables, model_reference, members), model

    def _require_task(self, name: str) -> LiveTask:
        task = self._tasks.get(name) if isinstance(name, str) else None
        if task is None:
            raise NotFound(f"No adapter {preview(name)}. Adapters: {preview(self.list_adapters())}")
        return task
