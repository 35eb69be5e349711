"""What a type of task does at each stage of a run."""

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.checks import split_history
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.plan import Job, Method, Plan
from adapter_bert_tf.run.saved_settings import config_as_read
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.store import SavedAdapter, contents, save_adapter, schema
from adapter_bert_tf.store.members import update_members
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.training.parameter_report import format_report

# Inputs of batches, each with the number of rows before its padding rows.
InputBatches: TypeAlias = Iterator[tuple[dict[str, tf.Tensor], int]]


class TaskRunner(abc.ABC):
    """What a type of task does at each stage of a run.

    Attributes:
      uses_pooler: whether its heads read the pooler's output.
      together: whether it trains several tasks together.
    """

    uses_pooler: bool
    together = False

    @abc.abstractmethod
    def check(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        """Checks the settings that decide what is read, and the saved adapter.

        Raises `InputError`.
        """

    @abc.abstractmethod
    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[TaskData, ...]:
        """Reads the data of the tasks."""

    @abc.abstractmethod
    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        """The batches from step `start` to the last, this host's rows of each."""

    def training_loss(
        self, tasks: Sequence[TaskData], class_weights: str | None, smoothing: float
    ) -> Loss | None:
        """The loss to train with; None for the model's own. Raises `InputError`.

        Args:
          tasks: of the run.
          class_weights, smoothing: the settings of these names.
        """
        if class_weights or smoothing:
            raise InputError(
                "--class_weights and --label_smoothing work with one task of classes, not with "
                "scores, several labels, several tasks or questions. Leave them out."
            )
        return None

    def task_names(self, config: RunConfig) -> tuple[str, ...]:
        """Names of several tasks that are trained together, in the order of their numbers."""
        return ()

    def check_method(self, method: Method, initial: InitialAdapter | None) -> None:
        """Requires a method for this number of tasks. Raises `InputError`."""
        if initial:
            require_one_task(initial.saved.config, initial.folder)
        if method.tuning.of_several_tasks:
            raise InputError(
                f"{method.tuning.method} trains several tasks together. Received: one. Name them, "
                "separated by commas, or --tuning=adapters."
            )

    def new_model(self, plan: Plan, encoder: TaskEncoder | AdapterBertEncoder) -> EncoderModel:
        """The model around an encoder, with fresh heads."""
        task = plan.only_task
        kind = task.task_type
        return kind.new_model(encoder, kind.num_outputs(task.labels_in_order))

    def report(self, job: Job) -> str:
        """Table of what is trained, under a line that programs look for."""
        tuning = job.plan.method.tuning
        return format_report(
            job.model, job.trained, tuning, f"What --tuning={tuning.method} trains:"
        )

    def assign_start(self, plan: Plan, model: EncoderModel) -> None:
        """Assigns the weights that the training starts from. Raises `InputError`."""
        assert plan.initial_adapter
        plan.initial_adapter.assign_to(model, plan.base.fingerprint(), plan.only_task)

    def report_start(self, plan: Plan, model: EncoderModel) -> str:
        """One line that names the weights that are taken over."""
        assert plan.initial_adapter
        return plan.initial_adapter.report(model, plan.only_task)

    def begin_training(self, job: Job) -> None:
        """Prepares the model for training."""
        return

    @abc.abstractmethod
    def finish_training(self, job: Job) -> None:
        """Undoes after training what the training needed."""

    @abc.abstractmethod
    def is_evaluated(self, plan: Plan) -> bool:
        """Whether the run has results."""

    @abc.abstractmethod
    def evaluate(self, job: Job) -> dict[str, float]:
        """Results on the development sets; writes nothing."""

    def write_details(self, job: Job) -> None:
        """Writes and prints the details of the last evaluation."""
        return

    @abc.abstractmethod
    def dev_batches(self, plan: Plan) -> InputBatches:
        """The inputs of the development set, in batches, each with the number of rows that count.

        The rows after those only fill up the batch.
        """

    @abc.abstractmethod
    def predict(self, job: Job) -> None:
        """Writes predictions, if the job writes."""

    @abc.abstractmethod
    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        """Patterns of the names of result files in `--output_dir`."""

    def score(self, metrics: Sequence[str], results: Mapping[str, float]) -> float:
        """The number to choose runs and weights by; higher is better.

        Args:
          metrics: the metric of each task, keys of the results; their mean is the score.
          results: of `evaluate`.
        """
        return sum(results[metric] for metric in metrics) / len(metrics)

    def save(self, job: Job) -> None:
        """Writes the adapter directory of a trained job, with its result if there is one.

        Raises:
          InputError: when another run has written its adapter there in the meantime.
        """
        plan = job.plan
        plan.folder.require_own_adapter_still(plan.actions.overwrite)
        kept = contents.kept_variables(job.model, plan.method.tuning, plan.method.adapter)
        save_adapter(
            plan.paths.adapter_dir,
            self.adapter_config(job),
            kept,
            plan.method.dtype,
            update_members(plan.members, kept),
        )

    def adapter_config(self, job: Job) -> dict[str, Any]:
        """Configuration of the adapter directory of a trained job."""
        return self.describe_adapter(job, **saved_task(job, job.plan.only_task))

    def describe_adapter(self, job: Job, **task: Any) -> dict[str, Any]:
        """Configuration of the adapter directory of a trained job, with that of its task."""
        plan = job.plan
        return schema.describe(
            base=plan.folder.run.content["base"],
            tuning=plan.method.tuning,
            adapter=plan.method.adapter,
            global_step=job.record.get("global_step", 0),
            command=command(),
            run=plan.folder.run.run_id,
            **plan.base.named(),
            **task,
        )

    def exported_config(self, job: Job) -> dict[str, Any]:
        """Configuration of a SavedModel that reads and answers as this run's predictions."""
        saved = job.plan.saved
        return config_as_read(saved.config, job.plan.tasks) if saved else self.adapter_config(job)

    def export(self, job: Job) -> None:
        """Writes the SavedModel."""
        plan, config = job.plan, self.exported_config(job)
        export_task(plan.paths.export_dir, job.model, config, plan.base.vocabulary)
        print(f"SavedModel: {plan.paths.export_dir}", flush=True)


def saved_task(job: Job, task: TaskData) -> dict[str, Any]:
    """Description of a task in an adapter directory, with its result if there is one."""
    config = split_history.adapter_config(task, job.plan.initial_adapter, job.plan.members)
    return config | {"metric": split_history.mark_metric(_metric_of(job, task), config)}


def _metric_of(job: Job, task: TaskData) -> dict[str, Any] | None:
    results = job.record.get("eval")
    if not results:
        return None
    name = task.metric.removeprefix("eval_").removeprefix(f"{task.name}_")
    return {"name": name, "value": results[task.metric], "split": "dev"}
