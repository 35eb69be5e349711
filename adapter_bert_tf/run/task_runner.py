"""The interface of task runners: the code of a type of task at each stage of a run."""

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import ActionsConfig
from adapter_bert_tf.config.sections.training import TrainingConfig
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.errors import Conflict
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.checks import split_history
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.plan import Job, Method, Plan
from adapter_bert_tf.run.saved_settings import config_as_read
from adapter_bert_tf.run.task_data import DevSet, TaskData
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.serving.merged import merged_model
from adapter_bert_tf.store import SavedAdapter, contents, save_adapter, schema
from adapter_bert_tf.store.members import update_members
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.training.parameter_report import format_report

# Inputs of batches, each with the number of rows before its padding rows.
InputBatches: TypeAlias = Iterator[tuple[dict[str, tf.Tensor], int]]


class TaskRunner(abc.ABC):
    """The code of a type of task at each stage of a run.

    Attributes:
      uses_pooler: whether its heads read the pooler's output.
      together: whether it trains several tasks together.
      export_model: function that writes a SavedModel.
    """

    uses_pooler: bool
    together = False
    export_model = staticmethod(export_task)

    @abc.abstractmethod
    def check(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        """Checks the settings of the data, and the saved adapter. Raises `InputError`."""

    @abc.abstractmethod
    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[TaskData, ...]:
        """Reads the data of the tasks."""

    @abc.abstractmethod
    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        """Returns the batches from step `start` to the last, with this host's rows of each."""

    def training_loss(self, tasks: Sequence[TaskData], config: TrainingConfig) -> Loss | None:
        """Returns the loss to train with; None for the model's own. Raises `InputError`."""
        if config.class_weights or config.label_smoothing:
            raise Conflict(
                "--class_weights and --label_smoothing work only with one task of classes. Leave "
                "them out."
            )
        return None

    def table_name(self, config: RunConfig) -> str:
        """Returns the name of the task in tables of analyses."""
        return str(config.values.get("task_name") or "").lower()

    def task_names(self, config: RunConfig) -> tuple[str, ...]:
        """Returns the names of several tasks that are trained together, in order."""
        return ()

    def check_method(self, method: Method, initial: InitialAdapter | None) -> None:
        """Raises `InputError` for a method of another number of tasks."""
        if initial:
            require_one_task(initial.saved.config, initial.folder)
        if method.tuning.of_several_tasks:
            raise Conflict(
                f"--tuning={method.tuning.method} trains several tasks together. Add tasks to "
                "--task_name, separated by commas, or choose --tuning=adapters."
            )

    def new_model(self, plan: Plan, encoder: TaskEncoder | AdapterBertEncoder) -> EncoderModel:
        """Returns the model around an encoder, with new heads."""
        task = plan.only_task
        outputs = task.task_type.num_outputs(task.labels_in_order)
        return task.task_type.new_model(encoder, outputs)

    def report(self, job: Job) -> str:
        """Returns a table of what is trained, under a line that programs search for."""
        tuning = job.plan.method.tuning
        return format_report(
            job.model, job.trained, tuning, f"What --tuning={tuning.method} trains:"
        )

    def assign_start(self, initial: InitialAdapter, plan: Plan, model: EncoderModel) -> None:
        """Assigns the weights that the training starts from. Raises `InputError`."""
        initial.assign_to(model, plan.base.fingerprint(), plan.only_task)

    def report_start(self, initial: InitialAdapter, plan: Plan, model: EncoderModel) -> str:
        """Returns one line about the weights that are assigned."""
        return initial.report(model, plan.only_task)

    def begin_training(self, job: Job) -> None:
        """Prepares the model for training."""
        return

    @abc.abstractmethod
    def finish_training(self, job: Job) -> None:
        """Reverts the model after training."""

    @abc.abstractmethod
    def is_evaluated(self, actions: ActionsConfig, tasks: Sequence[TaskData]) -> bool:
        """Whether the run has results."""

    @abc.abstractmethod
    def evaluate(self, job: Job) -> dict[str, float]:
        """Returns the results on the development sets; writes nothing."""

    def write_details(self, job: Job) -> None:
        """Writes and prints the details of the last evaluation."""
        return

    def dev_set(self, plan: Plan) -> DevSet:
        """Returns the development set for analyses. Raises `InputError` without labels."""
        raise Conflict(
            f"This analysis does not know tasks of the type {plan.only_task.task_type.name}."
        )

    @abc.abstractmethod
    def dev_batches(self, plan: Plan) -> InputBatches:
        """Yields the inputs of the development set, in batches."""

    @abc.abstractmethod
    def predict(self, job: Job) -> None:
        """Writes predictions, if the job writes."""

    def answer(self, plan: Plan, model: Callable[[], EncoderModel]) -> None:
        """Prints answers that a run writes into no file; `model` returns the trained model."""
        return

    @abc.abstractmethod
    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        """Returns patterns of the names of result files in `--output_dir`."""

    def score(self, metrics: Sequence[str], results: Mapping[str, float]) -> float:
        """Returns the mean of the tasks' metrics in the results; higher is better."""
        return sum(results[metric] for metric in metrics) / len(metrics)

    def save(self, job: Job) -> None:
        """Writes the adapter directory of a trained job. Raises `InputError`."""
        plan = job.plan
        plan.folder.require_own_adapter_still(plan.actions.overwrite)
        kept = contents.kept_variables(job.model, plan.method.tuning, plan.method.adapter)
        save_adapter(
            plan.output.adapter_folder,
            self.adapter_config(job),
            kept,
            plan.method.dtype,
            update_members(plan.members, kept),
        )

    def adapter_config(self, job: Job) -> dict[str, Any]:
        """Returns the configuration of the adapter directory of a trained job."""
        return self.describe_adapter(job, **saved_task(job, job.plan.only_task))

    def describe_adapter(self, job: Job, **task: Any) -> dict[str, Any]:
        """Returns a configuration with the description of a task."""
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
        """Returns the configuration of a SavedModel that answers as this run predicts."""
        saved = job.plan.saved
        return config_as_read(saved.config, job.plan.tasks) if saved else self.adapter_config(job)

    def export(self, job: Job) -> None:
        """Writes the SavedModel."""
        plan, config = job.plan, self.exported_config(job)
        model = merged_model(job.model, config) if plan.actions.merge else job.model
        self.export_model(plan.output.export_folder, model, config, plan.base.vocabulary)
        print(f"SavedModel: {plan.output.export_folder}", flush=True)


def saved_task(job: Job, task: TaskData) -> dict[str, Any]:
    """Returns the description of a task in an adapter directory, with its result, if any."""
    config = split_history.adapter_config(task, job.plan.initial_adapter, job.plan.members)
    return config | {"metric": split_history.mark_metric(_metric_of(job, task), config)}


def _metric_of(job: Job, task: TaskData) -> dict[str, Any] | None:
    results = job.record.get("eval")
    if not results:
        return None
    name = task.metric.removeprefix("eval_").removeprefix(f"{task.name}_")
    return {"name": name, "value": results[task.metric], "split": "dev"}
