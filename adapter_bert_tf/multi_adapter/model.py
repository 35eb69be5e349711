"""Many tasks on one frozen base, each with a small set of weights of its own."""

import copy
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base import Base, load_base
from adapter_bert_tf.errors import InputError, require_bools
from adapter_bert_tf.heads import head_of
from adapter_bert_tf.heads.task_model import TaskModel
from adapter_bert_tf.multi_adapter.forward import ForwardPasses
from adapter_bert_tf.multi_adapter.fusions import members_of
from adapter_bert_tf.multi_adapter.inputs import check_is_new, check_name, encoder_inputs, strings
from adapter_bert_tf.multi_adapter.live_task import LiveTask
from adapter_bert_tf.multi_adapter.new_task import new_task
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.checks import plain_metric
from adapter_bert_tf.store.combine import without_lowest
from adapter_bert_tf.store.directory import load_adapter, save_adapter
from adapter_bert_tf.store.members import Member, fusion_of, stacked, trained_further
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.store.place import require_same_task
from adapter_bert_tf.training.tuning import Tuning, is_trained, select_trained


class AdapterModel:
    """A base, read once, and the adapters of any number of tasks.

    No adapter is ever "active": each call names the one it means, or one for each row. Training one
    task changes no other, and not the base.

    Args:
      base: `Base`, or what `load_base` takes.

    Raises:
      InputError: when there is no such base.
    """

    def __init__(self, base: Base | str | os.PathLike[str] | None = None) -> None:
        if not isinstance(base, Base):
            base = load_base(None if base is None else storage.path_of(base))
        self.base = base
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
        **inputs: int,
    ) -> TaskModel:
        """Adds a task with fresh weights.

        Args:
          name: of the task.
          labels: label strings in the order of their ids; none for regression.
          config: name of a preset, a `PartsConfig`, or None with a tuning that needs none.
          head: `classification`, `multi_label` or `span`.
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
        check_name(name, self.list_adapters())
        tuning = Tuning() if tuning is None else tuning
        described = new_task(name, labels, self.base, config, head, tuning, inputs)
        self._tasks[name], model = self._with_model(described, {})
        return model

    def add_fusion(
        self,
        name: str,
        members: Sequence[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]],
        labels: Sequence[str] = (),
        head: str = "classification",
        tuning: Tuning | None = None,
        cooling_steps: int = 0,
        **inputs: int,
    ) -> TaskModel:
        """Adds a task that listens to the adapters of others (Pfeiffer et al. 2021).

        Any number of fusions may have the same members, each under a name of its own. A fusion has
        copies of them: what becomes of theirs later does not matter to it.

        Args:
          name: of the task.
          members: names of adapters of this model or adapter directories; or a dict from a name in
            the fusion to one of these.
          labels, head, **inputs: as for `add_adapter`.
          tuning: None for `Tuning("fusion")`; with `train_members=True` they are trained as well.
          cooling_steps: as in `FusionConfig`.

        Returns:
          `tf_keras.Model`, as of `add_adapter`. Its losses hold the values near the identity.

        Raises:
          InputError: when the name is taken, members cannot be fused, or something is out of range.
        """
        check_name(name, self.list_adapters())
        found = members_of(members, self._find, self.list_adapters(), self.base.fingerprint())
        config = fusion_of(found, cooling_steps)
        tuning = Tuning("fusion") if tuning is None else tuning
        if not isinstance(tuning, Tuning) or tuning.method != "fusion":
            raise InputError(f'tuning of a fusion is Tuning("fusion", ...). Received: {tuning!r}')
        described = new_task(name, labels, self.base, config, head, tuning, inputs, found)
        self._tasks[name], model = self._with_model(described, stacked(config, found), found)
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
        path = storage.path_of(folder)
        saved = without_lowest(load_adapter(path), drop_lowest)
        require_one_task(saved.config, path)
        if name is not None:
            check_name(name, self.list_adapters())
        else:
            name = contents.name_of(saved.config)
            check_is_new(name, self.list_adapters())
        check_base(saved.config, self.base.fingerprint())
        config = contents.named(saved.config, name)
        # A constant keeps the array that it was made of as well: twice the memory.
        values = {key: tf.identity(tf.constant(value)) for key, value in saved.weights.items()}
        task = LiveTask(config, values, members=saved.members)
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
        require_bools(overwrite=overwrite)
        task, path = self._find(name), storage.path_of(folder)
        described = task.described()
        config = described | {"metric": plain_metric(metric) or described["metric"]}
        config.pop("run", None)  # What is saved here may have been trained further.
        if not overwrite:
            require_same_task(path, config)
        members = trained_further(task.members, task.values)
        save_adapter(path, config, task.values, dtype, members)

    def list_adapters(self) -> list[str]:
        """Names of the tasks, in the order in which they came."""
        return list(self._tasks)

    def delete_adapter(self, name: str) -> None:
        """Removes a task. Raises `InputError` if there is none of that name."""
        self._find(name)
        self._tasks.pop(name, None)
        self._passes.forget_all_but(list(self._tasks.values()))

    def config(self, name: str) -> dict[str, Any]:
        """What the adapter directory of a task says: labels, sizes, metric, base."""
        task = self._find(name)
        config = copy.deepcopy(task.described())
        members = trained_further(task.members, task.values)
        digests = [member.config["sha256"] for member in members]
        return config | ({"members": digests} if members else {})

    def model(self, name: str) -> TaskModel:
        """The `tf_keras.Model` that trains a task further; its training changes this object."""
        task = self._find(name)
        model = task.model()
        if model is None:
            found = self._with_model(task.described(), task.values, task.members)
            self._tasks[name], model = found
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
          InputError: for an unknown name, a wrong number of names, or spans and classes at once.
        """
        inputs = encoder_inputs(inputs, self.base.config)
        if isinstance(adapter, str):
            return self._passes.one(self._find(adapter), inputs)
        names = strings(adapter, "An adapter is a name, or for several rows")
        batch = inputs["input_word_ids"].shape[0]
        if not names or len(names) != batch:
            raise InputError(
                "One adapter a row, and at least one row. Received: "
                f"{len(names)} names for {batch} rows."
            )
        tasks = {name: self._find(name) for name in dict.fromkeys(names)}
        return self._passes.by_row(names, tasks, inputs)

    def with_members(self, inputs: Mapping[str, Any], name: str) -> dict[str, tf.Tensor]:
        """Logits of a fusion and of each of its members by itself, in one pass of the base.

        Args:
          inputs: as of a call.
          name: of the fusion.

        Returns:
          dict from `name` and the members' names to what a call returns for each.

        Raises:
          InputError: for an unknown name, or a task that is no fusion.
        """
        task = self._find(name)
        return self._passes.with_members(name, task, encoder_inputs(inputs, self.base.config))

    def _with_model(
        self,
        config: dict[str, Any],
        values: Mapping[str, Tensor],
        members: tuple[Member, ...] = (),
    ) -> tuple[LiveTask, TaskModel]:
        """The `LiveTask` and a model that trains it, starting from `values` if there are any."""
        tuning = contents.tuning_of(config)
        encoder = self._encoder_of(contents.adapter_of(config), tuning)
        model = head_of(config).new_model(encoder, contents.num_outputs(config))
        select_trained(model, tuning)
        kept = contents.kept_variables(model, tuning, contents.adapter_of(config))
        for name, value in values.items():
            kept[name].assign(value)
        found = (lambda: model) if tuning.changes_base else weakref.ref(model)
        return LiveTask(config, kept, found, members), model

    def _encoder_of(
        self, adapter: ModuleConfig | None, tuning: Tuning
    ) -> AdapterBertEncoder | TaskEncoder:
        """An encoder that shares of the base what the tuning leaves alone."""
        if tuning.changes_base:
            encoder = self.base.new_encoder(frozen_layers=tuning.frozen_layers)
            self.base.assign(encoder.named_variables())
            return encoder
        depth = self.encoder.config["num_layers"]
        trained = {
            spec.group for spec in self.encoder.specs().values() if is_trained(spec, depth, tuning)
        }
        brought = adapter.brought if adapter else ()
        return TaskEncoder(
            self.encoder,
            adapter,
            own_norms="LayerNorm" in {*trained, *brought},
            own_pooler="pooler" in trained,
            frozen_layers=tuning.frozen_layers,
        )

    def _find(self, name: str) -> LiveTask:
        task = self._tasks.get(name) if isinstance(name, str) else None
        if task is None:
            raise InputError(
                f"No adapter {preview(name)}. There are {preview(self.list_adapters())}."
            )
        return task
