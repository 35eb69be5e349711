"""The plan of a run: all that a run needs, as one immutable value; and the run in progress."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import tensorflow as tf

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import Base
from adapter_bert_tf.config.sections.command import ActionsConfig, OutputConfig
from adapter_bert_tf.config.sections.training import EvaluationConfig
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.mixture import Temperature
from adapter_bert_tf.data.padding import PadTo
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.output.run_dir import RunDir
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.training.device.strategy import is_chief
from adapter_bert_tf.training.evaluation import Rungs
from adapter_bert_tf.training.loop import TrainingSettings
from adapter_bert_tf.training.tuning import Tuning


@dataclasses.dataclass(frozen=True)
class Batches:
    """How examples form batches.

    Args:
      train, evaluate, predict: examples in a batch, over all replicas.
      max_seq_length: of an input, in word pieces.
      pad_to: how lengths are rounded up.
      group_by_length: from which training examples batches of similar lengths are formed.
      seed: of the order of examples.
      temperature: how often each of several tasks is drawn; see `data.mixture`.
      epochs: passes over the training data.
    """

    train: int
    evaluate: int
    predict: int
    max_seq_length: int
    pad_to: PadTo
    group_by_length: Literal["epoch", "run", "no"]
    seed: int
    temperature: Temperature
    epochs: float


@dataclasses.dataclass(frozen=True)
class Method:
    """What is trained.

    Args:
      adapter: configuration of the module that is added to the base, or None.
      tuning: which variables are trained.
      dtype: of the adapter's file.
    """

    adapter: ModuleConfig | None
    tuning: Tuning
    dtype: str

    @property
    def usual_rate(self) -> float:
        """The peak learning rate where none is given: the adapter's own, or the tuning's."""
        own = self.adapter.learning_rate if self.adapter else None
        return own or self.tuning.usual_rate


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run that has been checked and can start.

    Args:
      tasks: data of the tasks, one or several.
      actions: what the run does.
      evaluation: evaluation during training, and which weights are kept.
      output: folders that it writes, and whether it ends with a report.
      saved: the adapter that is applied, if the run does not train.
      batches: how examples form batches.
      training: how to train; 0 steps if the run does not train.
      precision: a key of `precision.PRECISIONS`.
      dropout: rate of all dropouts of base and head in training; None for the base's own.
      folder: owner of `output.folder`.
      settings: dict from name to value, for `run.json`.
      initial_adapter: the saved adapter that the training starts from, or None.
      members: of a fusion that is trained.
      cache_frozen: whether the output of frozen layers is computed once, before the first step.
      rungs: where a search may stop the training.
    """

    tasks: tuple[TaskData, ...]
    actions: ActionsConfig
    evaluation: EvaluationConfig
    output: OutputConfig
    base: Base
    method: Method
    saved: SavedAdapter | None
    batches: Batches
    training: TrainingSettings
    strategy: tf.distribute.Strategy
    precision: str
    dropout: float | None
    folder: RunDir
    settings: dict[str, Any]
    initial_adapter: InitialAdapter | None = None
    members: tuple[Member, ...] = ()
    cache_frozen: bool = False
    rungs: Rungs | None = None

    @property
    def writes(self) -> bool:
        """Whether this process writes files; of several workers only the chief does."""
        return is_chief(self.strategy)

    def limit_batch(self, batch_size: int, rows: int) -> int:
        """Returns a batch size of at most `rows`, rounded up to a multiple of the replicas."""
        replicas = self.strategy.num_replicas_in_sync
        return min(batch_size, -(-rows // replicas) * replicas)

    def train_batches(
        self, make: Callable[..., tf.data.Dataset], examples: Any, start: int, share: HostShard
    ) -> tf.data.Dataset:
        """Returns the batches of one task from step `start`, as `make` forms them of its examples.

        `make` is `data.batches.train_batches`, or has its arguments.
        """
        batches = self.batches
        return make(
            examples,
            batches.train,
            self.training.steps,
            batches.seed,
            batches.max_seq_length,
            batches.pad_to,
            batches.group_by_length,
            start,
            share,
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys, in the results, of the metric to choose by of each task."""
        return tuple(task.metric for task in self.tasks)

    @property
    def only_task(self) -> TaskData:
        """The task of a run that has one."""
        (task,) = self.tasks
        return task


@dataclasses.dataclass
class Job:
    """A run in progress.

    Args:
      model: with the base's weights, and the saved adapter's if there is one.
      trained: dict from common name to variable.
      standardized: whether the model's scores are standardized, as they are during training.
      record: for `run.json`.
      evaluated: data that an evaluation keeps for predictions and details.
    """

    plan: Plan
    model: EncoderModel
    trained: dict[str, tf.Variable]
    standardized: bool = False
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    evaluated: dict[str, Any] = dataclasses.field(default_factory=dict)
