"""`--init_from`: the saved adapter that a training starts from."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.variable_specs import groups
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Value
from adapter_bert_tf.config.settings import with_role
from adapter_bert_tf.errors import Conflict, InputError, Missing, error_context
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.output.records import digest
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store import SavedAdapter, contents, load_adapter
from adapter_bert_tf.store.combining.combine import SHAPE_KEYS, drop_lowest_layers
from adapter_bert_tf.store.directory import extract_task
from adapter_bert_tf.store.files import find_adapter, missing_adapter
from adapter_bert_tf.store.multitask import TASKS, config_of, is_several, names_of, unmeasured
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.training.tuning import Tuning

# Plural names of groups of variables; other groups keep theirs.
GROUPS = {"adapters": "adapters", "LayerNorm": "LayerNorms"}


@dataclasses.dataclass(frozen=True)
class InitialAdapter:
    """A saved adapter to start from.

    Args:
      folder: its directory.
      saved: its content; if one task starts from an adapter of several, that of one task.
      has_head: whether its head belongs to a task; the mean of several tasks has none.
      task: the saved task that new tasks start as; None for the mean.
    """

    folder: str
    saved: SavedAdapter
    has_head: bool = True
    task: str | None = None

    @functools.cached_property
    def sha256(self) -> str:
        """Digest of the weights and their meaning, without their path and results."""
        config = unmeasured(self.saved.config)
        decisive = {name: config[name] for name in (*SHAPE_KEYS, "weights_sha256")}
        return digest(decisive | ({TASKS: config[TASKS]} if is_several(config) else {}))

    @property
    def has_task(self) -> bool:
        """Whether it was trained for a task: one for plain text leaves more open."""
        return is_several(self.saved.config) or type_of(self.saved.config).is_task

    def tuning_with(self, train_layer_norm: bool, train_pooler: bool) -> Tuning:
        """Returns its tuning; without a task also what these settings add."""
        tuning = contents.tuning_of(self.saved.config)
        if self.has_task:
            return tuning
        with_norms = tuning.train_layer_norm or train_layer_norm
        return dataclasses.replace(tuning, train_layer_norm=with_norms, train_pooler=train_pooler)

    def has_head_of(self, task: TaskData) -> bool:
        """Whether its head has the type and the labels of a task."""
        return self.has_head and fits_head(self.saved.config, task)

    def assign_to(self, model: EncoderModel, fingerprint: dict[str, Any], task: TaskData) -> None:
        """Assigns its weights, the head's only if the task has it. Raises `InputError`."""
        self.saved.assign_to(model.named_variables(), fingerprint, self.has_head_of(task))

    def report(self, model: EncoderModel, task: TaskData) -> str:
        """Returns one line about the weights that are assigned."""
        specs = model.specs()
        # Heads of other types have variables that this model does not have.
        shared = [name for name in self.saved.weights if not name.startswith("head/")]
        saved_groups = {specs[name].group for name in shared} - {"head"}
        names = [GROUPS.get(group, group) for group in groups() if group in saved_groups]
        config = self.saved.config
        start = f"Starting from {self.folder}, of {contents.name_of(config)!r}: "
        if self.has_head_of(task):
            return f"{start}{', '.join([*names, 'head'])}."
        start += ", ".join(names)
        if not self.has_head:
            return f"{start}. The head is fresh: the adapter gives what its tasks share."
        own = type_of(config).head_summary(config["labels"])
        new = task.task_type.head_summary(task.labels_in_order)
        start += "" if names else "nothing"
        return f"{start}. The head is fresh: there {own}, here {new}."


def fits_head(config: Mapping[str, Any], task: TaskData) -> bool:
    """Whether the head of a saved task has the type and the labels of a task."""
    saved = (type_of(config).name, config["labels"])
    return saved == (task.task_type.name, list(task.labels_in_order))


def load_initial_adapter(config: RunConfig, together: bool = False) -> InitialAdapter | None:
    """Loads the adapter of `--init_from`, if given, for one task or several `together`."""
    folder, task = config.training.init_from, config.training.init_task
    if not folder:
        if task:
            raise Missing("--init_task names a task of --init_from=DIR, which is missing.")
        return None
    folder = _find_for_training(config, folder)
    saved = drop_lowest_layers(load_adapter(folder), config.method.adapter_drop)
    if is_several(saved.config):
        own = config.data.task_name if config.names_task else config.data.adapter_name
        return _of_several(folder, saved, task, own, together)
    if task:
        raise InputError(
            f"--init_task={task} names one of several tasks. Received: --init_from={folder}, an "
            f"adapter of {contents.name_of(saved.config)!r} alone. Leave --init_task out."
        )
    return InitialAdapter(folder, saved)


def _find_for_training(config: RunConfig, folder: str) -> str:
    """Returns the folder of the adapter in `folder`, which may be that of its run."""
    if not config.actions.do_train:
        raise Conflict(
            f"--init_from={folder} needs --do_train. To evaluate an adapter, name it with "
            "--adapter_dir."
        )
    found = find_adapter(folder)
    if found is None:
        with error_context("--init_from"):
            raise missing_adapter(folder)
    return found


def _of_several(
    folder: str, saved: SavedAdapter, task: str | None, own_task: str | None, together: bool
) -> InitialAdapter:
    """Returns the start of several tasks, or of one, from an adapter of several."""
    if task:
        config_of(saved.config, task)  # Raises where it is missing.
    if together:
        return InitialAdapter(folder, saved, task=task)
    if own_task in names_of(saved.config):
        task = task or own_task
    with error_context(f"--init_from={folder}"):
        return InitialAdapter(folder, extract_task(saved, task), has_head=task is not None)


def recorded_settings(
    config: RunConfig, initial: InitialAdapter | None = None
) -> Mapping[str, Value]:
    """Returns the settings for `run.json`, without those that `--init_from` decided.

    An adapter without a task leaves the pooler to the run.
    """
    decided = {*(with_role(Role.METHOD) if config.training.init_from else ())}
    if initial and not initial.has_task:
        decided.remove("train_pooler")
    return {n: v for n, v in config.values.items() if n not in decided or n in config.given}
