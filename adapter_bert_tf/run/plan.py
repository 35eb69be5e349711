"""The plan of a run: all that it needs to know, as one value that does not change."""

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import Base
from adapter_bert_tf.data.mixture import Temperature
from adapter_bert_tf.output.run_dir import RunDir
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.training.loop import TrainingSettings
from adapter_bert_tf.training.strategy import is_chief
from adapter_bert_tf.training.tuning import Tuning

if TYPE_CHECKING:
    from adapter_bert_tf.run.task_runner import TaskData, TaskRunner


@dataclasses.dataclass(frozen=True)
class Actions:
    """What a run does.

    Args:
      train, evaluate, predict, export: the flags `--do_...`.
      dry_run: whether it ends before the first of these.
      overwrite: whether it may replace what another run left.
      report: whether a page shows in the end what is in the folder.
    """

    train: bool
    evaluate: bool
    predict: bool
    export: bool
    dry_run: bool
    overwrite: bool
    report: bool


@dataclasses.dataclass(frozen=True)
class Places:
    """Where things go: folders, local or remote.

    Args:
      output_dir: of everything that a run makes.
      adapter_dir: where the adapter is written, or read when the run does not train.
      export_dir: of the SavedModel.
    """

    output_dir: str
    adapter_dir: str
    export_dir: str


@dataclasses.dataclass(frozen=True)
class Batches:
    """How examples form batches.

    Args:
      train, evaluate, predict: examples in a batch, over all replicas.
      max_seq_length: of an input, in word pieces.
      pad_to: what lengths are a multiple of; None for one fixed length.
      group_by_length: which batches of training are of similar lengths.
      seed: of their order.
      temperature: how often each of several tasks is drawn; see `data.mixture`.
      epochs: passes over the training data.
    """

    train: int
    evaluate: int
    predict: int
    max_seq_length: int
    pad_to: int | None
    group_by_length: Literal["epoch", "run", "no"]
    seed: int
    temperature: Temperature
    epochs: float


@dataclasses.dataclass(frozen=True)
class Method:
    """What is trained.

    Args:
      parts: what runs beside the base, or None.
      tuning: which variables move.
      dtype: of the adapter's file.
    """

    parts: ModuleConfig | None
    tuning: Tuning
    dtype: str


@dataclasses.dataclass(frozen=True)
class Choice:
    """Evaluation during training, and which weights are kept.

    Args:
      every: steps between evaluations; None for none.
      keep: `last` or `best`.
      patience: evaluations without a better one after which training ends; None: it goes on.
    """

    every: int | None
    keep: Literal["last", "best"]
    patience: int | None


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run that has been checked and can begin.

    Args:
      kind: `Kind` of its tasks.
      tasks: their data, one or several.
      actions: what it does.
      places: where things go.
      base: `Base`.
      method: what is trained.
      saved: the adapter that it applies, if it does not train.
      batches: how examples form batches.
      training: `TrainingSettings`; 0 steps if it does not train.
      choice: evaluation during training.
      strategy: `tf.distribute.Strategy`.
      precision: a key of `strategy.PRECISIONS`.
      dropout: rate of all dropouts of base and head in training; None for the base's own.
      folder: whose files `places.output_dir` holds.
      flags: dict of all flags, for `run.json`.
      start: the saved adapter that the training begins from, or None.
      members: of a fusion that is trained.
      cache_frozen: whether what frozen layers give is computed once, before the first step.
    """

    kind: "TaskRunner"
    tasks: tuple["TaskData", ...]
    actions: Actions
    places: Places
    base: Base
    method: Method
    saved: SavedAdapter | None
    batches: Batches
    training: TrainingSettings
    choice: Choice
    strategy: tf.distribute.Strategy
    precision: str
    dropout: float | None
    folder: RunDir
    flags: dict[str, Any]
    start: InitialAdapter | None = None
    members: tuple[Member, ...] = ()
    cache_frozen: bool = False

    @property
    def writes(self) -> bool:
        """Whether this process writes files; of several workers one does."""
        return is_chief(self.strategy)

    def no_larger(self, batch_size: int, rows: int) -> int:
        """A batch size, but no more than there are rows; a multiple of the replicas."""
        replicas = self.strategy.num_replicas_in_sync
        return min(batch_size, -(-rows // replicas) * replicas)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metric to choose by of each task, keys of the results."""
        return tuple(task.metric for task in self.tasks)

    @property
    def only_task(self) -> "TaskData":
        """The task of a run that has one."""
        (task,) = self.tasks
        return task
