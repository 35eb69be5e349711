"""`--init_from`: the saved adapter that a training begins from."""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from adapter_bert_tf.adapters.variable_specs import groups
from adapter_bert_tf.config import table
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Value
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.output.records import digest
from adapter_bert_tf.store import SavedAdapter, load_adapter
from adapter_bert_tf.store.combine import SHAPE_KEYS, drop_lowest_layers
from adapter_bert_tf.store.directory import adapter_exists, extract_task
from adapter_bert_tf.store.multitask import TASKS, config_of, is_several, names_of, unmeasured
from adapter_bert_tf.task_types import type_of

if TYPE_CHECKING:
    from adapter_bert_tf.run.task_runner import TaskData

GROUPS = {"adapters": "adapters", "LayerNorm": "LayerNorms"}  # Other groups are called as they are.


@dataclasses.dataclass(frozen=True)
class InitialAdapter:
    """A saved adapter to begin from.

    Args:
      folder: where it is.
      saved: what it holds; of several tasks, where one begins from it, an adapter of one.
      has_head: whether its head is that of a task; that of a mean of several is none's.
      task: whose part of several is taken for a task that is not among them; None for the mean.
    """

    folder: str
    saved: SavedAdapter
    has_head: bool = True
    task: str | None = None

    @functools.cached_property
    def sha256(self) -> str:
        """Of the weights and what they mean; not of where they are, nor of their results."""
        config = unmeasured(self.saved.config)
        decides = {name: config[name] for name in (*SHAPE_KEYS, "weights_sha256")}
        return digest(decides | ({TASKS: config[TASKS]} if is_several(config) else {}))

    def has_head_of(self, task: "TaskData") -> bool:
        """Whether its head is of the kind and the labels of a task."""
        theirs = (type_of(self.saved.config).name, self.saved.config["labels"])
        return self.has_head and theirs == (task.task_type.name, list(task.labels_in_order))

    def assign_to(self, model: EncoderModel, fingerprint: dict[str, Any], task: "TaskData") -> None:
        """Assigns its weights to a model's variables, the head's only if the task has that head.

        Raises:
          InputError: when they do not fit the model or its base.
        """
        head = self.has_head_of(task)
        self.saved.assign_to(model.named_variables(), fingerprint, head)

    def report(self, model: EncoderModel, task: "TaskData") -> str:
        """One line that says what is taken over."""
        specs = model.specs()
        found = {specs[name].group for name in self.saved.weights}
        taken = [GROUPS.get(group, group) for group in groups() if group in found - {"head"}]
        theirs = self.saved.config
        line = f"Starting from {self.folder}, of {theirs['task']!r}: "
        if self.has_head_of(task):
            return f"{line}{', '.join([*taken, 'head'])}."
        if not self.has_head:
            return f"{line}{', '.join(taken)}. The head is fresh: this is what they have in common."
        return (
            f"{line}{', '.join(taken) or 'nothing'}. The head is fresh: there "
            f"{type_of(theirs).head_summary(theirs['labels'])}, here "
            f"{task.task_type.head_summary(task.labels_in_order)}."
        )


def load_initial_adapter(flags: RunFlags, together: bool = False) -> InitialAdapter | None:
    """The adapter of `--init_from`; None without the flag. Raises `InputError`.

    Args:
      flags: of the run.
      together: whether it trains several tasks.
    """
    folder, task = flags.init_from, getattr(flags, "init_task", None)
    if not folder:
        if task:
            raise InputError("--init_task names a task of --init_from=DIR, which is missing.")
        return None
    if not flags.do_train:
        raise InputError(
            f"--init_from={folder} is where a training begins: add --do_train. To evaluate an "
            "adapter, name it with --adapter_dir."
        )
    if not adapter_exists(folder):
        raise InputError(
            f"--init_from={folder} holds no adapter. Name the directory of one, with its "
            "adapter_config.json."
        )
    saved = drop_lowest_layers(load_adapter(folder), flags.adapter_drop)
    if not is_several(saved.config):
        if task:
            raise InputError(
                f"--init_task={task} names one of several tasks. Received: --init_from={folder}, "
                f"of {saved.config['task']!r} alone. Leave --init_task out."
            )
        return InitialAdapter(folder, saved)
    if task:
        config_of(saved.config, task)  # It must be there.
    if together:
        return InitialAdapter(folder, saved, task=task)
    name = getattr(flags, "task_name", None)
    if name in names_of(saved.config):
        task = task or name
    try:
        return InitialAdapter(folder, extract_task(saved, task), has_head=task is not None)
    except InputError as error:
        raise InputError(f"--init_from={folder}: {error}", *error.arguments) from error


def recorded_flags(flags: RunFlags) -> dict[str, Value]:
    """The flags as a record holds them: the method only where it was not taken from an adapter."""
    left = table.with_role(Role.METHOD) if flags.init_from else ()
    return {
        name: value
        for name, value in flags.values.items()
        if name not in left or name in flags.given
    }
