"""`--init_from`: the saved adapter that a training begins from."""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from adapter_bert_tf.adapters.specs import groups
from adapter_bert_tf.command import table
from adapter_bert_tf.command.roles import Role
from adapter_bert_tf.command.row import Value
from adapter_bert_tf.command.run_flags import RunFlags
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import head_of
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.run.identity import digest
from adapter_bert_tf.store import SavedAdapter, load_adapter
from adapter_bert_tf.store.combine import SAME, without_lowest
from adapter_bert_tf.store.directory import adapter_exists
from adapter_bert_tf.store.several import TASKS, is_several, unmeasured

if TYPE_CHECKING:
    from adapter_bert_tf.run.kind import TaskData

GROUPS = {"adapters": "adapters", "LayerNorm": "LayerNorms"}  # Other groups are called as they are.


@dataclasses.dataclass(frozen=True)
class Start:
    """A saved adapter to begin from.

    Args:
      folder: where it is.
      saved: what it holds.
    """

    folder: str
    saved: SavedAdapter

    @functools.cached_property
    def sha256(self) -> str:
        """Of the weights and what they mean; not of where they are, nor of their results."""
        config = unmeasured(self.saved.config)
        decides = {name: config[name] for name in (*SAME, "weights_sha256")}
        return digest(decides | ({TASKS: config[TASKS]} if is_several(config) else {}))

    def has_head_of(self, task: "TaskData") -> bool:
        """Whether its head is of the kind and the labels of a task."""
        theirs = (head_of(self.saved.config).name, self.saved.config["labels"])
        return theirs == (task.head.name, list(task.labels_in_order))

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
        return (
            f"{line}{', '.join(taken) or 'nothing'}. The head is fresh: there "
            f"{_said(head_of(theirs).name, theirs['labels'])}, here "
            f"{_said(task.head.name, task.labels_in_order)}."
        )


def _said(kind: str, labels: Any) -> str:
    """A kind of head and, where they tell it from another, its first labels."""
    if kind != "classification":
        return kind
    more = "..." if len(labels) > 5 else ""
    return f"{len(labels)} labels ({', '.join(labels[:5])}{more})"


def find_start(flags: RunFlags) -> Start | None:
    """The adapter of `--init_from`; None without the flag. Raises `InputError`."""
    folder = flags.init_from
    if not folder:
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
    return Start(folder, without_lowest(load_adapter(folder), flags.adapter_drop))


def recorded(flags: RunFlags) -> dict[str, Value]:
    """The flags as a record holds them: the method only where it was not taken from an adapter."""
    left = table.with_role(Role.METHOD) if flags.init_from else ()
    return {
        name: value
        for name, value in flags.values.items()
        if name not in left or name in flags.given
    }
