"""What differs between classification and question answering."""

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_flags import Part
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.checks import split_history
from adapter_bert_tf.run.saved_settings import as_read
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.store import SavedAdapter, contents, save_adapter, schema
from adapter_bert_tf.store.members import update_members
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.task_types import TaskType
from adapter_bert_tf.training.parameter_report import format_report

if TYPE_CHECKING:
    from adapter_bert_tf.run.init_from import InitialAdapter
    from adapter_bert_tf.run.job import Job
    from adapter_bert_tf.run.plan import Method, Plan


class TaskData(Protocol):
    """The data of one task of a run.

    Attributes:
      name: of the task.
      count: number of training examples.
      metric: key, in the results, of the metric to choose by; more is better.
      task_type: `TaskType`.
      labels_in_order: label strings in the order of their ids.
    """

    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def task_type(self) -> TaskType: ...
    @property
    def labels_in_order(self) -> Sequence[str]: ...

    def adapter_config(self) -> dict[str, Any]:
        """What a saved adapter says of the task."""

    def record(self) -> dict[str, Any]:
        """What `run.json` says of the data."""


class TaskRunner(abc.ABC):
    """A kind of tasks.

    Attributes:
      uses_pooler: whether its heads read the pooler's output.
      together: whether it trains several tasks together.
    """

    uses_pooler: bool
    together = False

    @abc.abstractmethod
    def check(self, flags: Part, saved: SavedAdapter | None) -> None:
        """Checks the flags that say what is read, and the saved adapter. Raises `InputError`."""

    @abc.abstractmethod
    def read(
        self, flags: Part, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[TaskData, ...]:
        """The data of the tasks."""

    @abc.abstractmethod
    def train_batches(self, plan: "Plan", start: int, share: HostShard) -> tf.data.Dataset:
        """The batches from step `start` to the last, a `Share` of each."""

    def training_loss(
        self, tasks: Sequence[TaskData], class_weights: str | None, smoothing: float
    ) -> Loss | None:
        """The loss to train with; None for the model's own. Raises `InputError`.

        Args:
          tasks: of the run.
          class_weights, smoothing: the flags of these names.
        """
        if class_weights or smoothing:
            raise InputError(
                "--class_weights and --label_smoothing are of one task of classes: not of "
                "scores, any number of labels, several tasks or questions. Leave them out."
            )
        return None

    def task_names(self, flags: Part) -> tuple[str, ...]:
        """Names of several tasks that are trained together, in the order of their numbers."""
        return ()

    def check_method(self, method: "Method", start: "InitialAdapter | None") -> None:
        """The method must be one for so many tasks. Raises `InputError`."""
        if start:
            require_one_task(start.saved.config, start.folder)
        if method.tuning.of_several_tasks:
            raise InputError(
                f"{method.tuning.method} trains several tasks together. Received: one. Name them, "
                "with commas between, or --tuning=adapters."
            )

    def new_model(self, plan: "Plan", encoder: TaskEncoder | AdapterBertEncoder) -> EncoderModel:
        """The model around an encoder, with fresh heads."""
        task = plan.only_task
        kind = task.task_type
        return kind.new_model(encoder, kind.num_outputs(task.labels_in_order))

    def report(self, job: "Job") -> str:
        """What is trained, under a line that programs look for."""
        tuning = job.plan.method.tuning
        return format_report(
            job.model, job.trained, tuning, f"What --tuning={tuning.method} trains:"
        )

    def assign_start(self, plan: "Plan", model: EncoderModel) -> None:
        """Assigns the weights that the training begins from. Raises `InputError`."""
        assert plan.start
        plan.start.assign_to(model, plan.base.fingerprint(), plan.only_task)

    def report_start(self, plan: "Plan", model: EncoderModel) -> str:
        """One line that says what is taken over."""
        assert plan.start
        return plan.start.report(model, plan.only_task)

    def begin_training(self, job: "Job") -> None:
        """Does to the model what is to be done before training, if anything."""
        return

    @abc.abstractmethod
    def finish_training(self, job: "Job") -> None:
        """Does to the model what is to be done after training, if anything."""

    @abc.abstractmethod
    def is_evaluated(self, plan: "Plan") -> bool:
        """Whether the run has results."""

    @abc.abstractmethod
    def evaluate(self, job: "Job") -> dict[str, float]:
        """The results; writes nothing."""

    def write_details(self, job: "Job") -> None:
        """Writes and prints what the last evaluation says besides its results, if anything."""
        return

    @abc.abstractmethod
    def evaluated(self, plan: "Plan") -> Iterator[tuple[dict[str, tf.Tensor], int]]:
        """The inputs of the development set, in batches, each with the number of rows that count.

        The rows after those only fill up the batch.
        """

    @abc.abstractmethod
    def predict(self, job: "Job") -> None:
        """Writes predictions, if the job writes."""

    @abc.abstractmethod
    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        """Patterns of the files in `--output_dir` that are this kind's own."""

    def score(self, metrics: Sequence[str], results: Mapping[str, float]) -> float:
        """The number to choose runs and weights by, more is better.

        Args:
          metrics: the metric of each task, keys of the results; the mean of these counts.
          results: of `evaluate`.
        """
        return sum(results[metric] for metric in metrics) / len(metrics)

    def save(self, job: "Job") -> None:
        """Writes the adapter directory of a trained job, with its result if there is one.

        Raises:
          InputError: when another run has written its adapter there meanwhile.
        """
        job.plan.folder.require_own_adapter_still(job.plan.actions.overwrite)
        plan = job.plan
        kept = contents.kept_variables(job.model, plan.method.tuning, plan.method.parts)
        save_adapter(
            plan.places.adapter_dir,
            self.description(job),
            kept,
            plan.method.dtype,
            update_members(plan.members, kept),
        )

    def description(self, job: "Job") -> dict[str, Any]:
        """What the adapter directory of a trained job says."""
        return self.described(job, **task_as_saved(job, job.plan.only_task))

    def described(self, job: "Job", **of_task: Any) -> dict[str, Any]:
        """What the adapter directory of a trained job says, with what is said of its task."""
        plan = job.plan
        return schema.describe(
            base=plan.folder.run.content["base"],
            tuning=plan.method.tuning,
            adapter=plan.method.parts,
            global_step=job.record.get("global_step", 0),
            command=command(),
            run=plan.folder.run.run_id,
            **plan.base.named(),
            **of_task,
        )

    def exported(self, job: "Job") -> dict[str, Any]:
        """What a SavedModel is built by: it reads and answers as the predictions of this run."""
        saved = job.plan.saved
        return as_read(saved.config, job.plan.tasks) if saved else self.description(job)

    def export(self, job: "Job") -> None:
        """Writes the SavedModel."""
        plan = job.plan
        export_task(plan.places.export_dir, job.model, self.exported(job), plan.base.vocabulary)
        print(f"SavedModel: {plan.places.export_dir}", flush=True)


def task_as_saved(job: "Job", task: TaskData) -> dict[str, Any]:
    """What an adapter directory says of a task and of its result, if there is one."""
    config = split_history.adapter_config(task, job.plan.start, job.plan.members)
    return config | {"metric": split_history.marked(_metric_of(job, task), config)}


def _metric_of(job: "Job", task: TaskData) -> dict[str, Any] | None:
    results = job.record.get("eval")
    if not results:
        return None
    name = task.metric.removeprefix("eval_").removeprefix(f"{task.name}_")
    return {"name": name, "value": results[task.metric], "split": "dev"}
