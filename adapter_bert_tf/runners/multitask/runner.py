"""Runs of several tasks that are trained together: mixed batches, a head for each task."""

import abc
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.mixture import plan_mixture
from adapter_bert_tf.errors import Conflict, Mismatch, error_context
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.plan import Job, Method, Plan
from adapter_bert_tf.run.task_runner import TaskRunner, saved_task
from adapter_bert_tf.runners.multitask import initial_weights
from adapter_bert_tf.runners.multitask.data import PlacedData, mixed_features
from adapter_bert_tf.runners.multitask.task_configs import configs_of
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.serving.multitask import export_together, signature_names
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.directory import with_task_config
from adapter_bert_tf.store.multitask import (
    common_type,
    head_among,
    heads_of,
    is_several,
    types_of,
    whole,
)
from adapter_bert_tf.training.parameter_report import format_per_task_report
from adapter_bert_tf.training.tuning import MULTITASK_METHODS

AVERAGE = "eval_average"


class MultitaskRunner(TaskRunner):
    """Tasks that are trained together; a subclass also has the runner of one of them.

    Attributes:
      gather: makes batches of the rows of a plan, as `data.batches.gather_batches`.
    """

    together = True
    export_model = staticmethod(export_together)
    gather: ClassVar[Callable[..., tf.data.Dataset]]

    @abc.abstractmethod
    def check_one(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        """Checks one of the tasks, and the saved adapter with its configuration."""

    def check(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        if saved and not is_several(saved.config):
            raise Mismatch(
                f"The saved adapter was trained for one task, {preview(saved.config['task'])}. "
                f"Received: --task_name={config.data.task_name}. Name that task alone."
            )
        for name, own in configs_of(config, saved).items():
            with error_context(f"The task {name!r}"):
                self.check_one(own, with_task_config(saved, name) if saved else None)

    def task_names(self, config: RunConfig) -> tuple[str, ...]:
        return tuple(configs_of(config))

    def check_method(self, method: Method, initial: InitialAdapter | None) -> None:
        if not method.tuning.of_several_tasks:
            raise Conflict(
                f"--tuning must be one of {', '.join(MULTITASK_METHODS)} for several tasks. "
                f"Received: {method.tuning.method}."
            )

    def new_model(self, plan: Plan, encoder: TaskEncoder | AdapterBertEncoder) -> EncoderModel:
        if plan.saved:
            types, heads = types_of(plan.saved.config), heads_of(plan.saved.config)
        else:
            types = {task.name: task.task_type for task in plan.tasks}
            heads = [head_among(t.name, t.task_type, t.labels_in_order) for t in plan.tasks]
        if plan.actions.do_export:  # Names are checked before the training.
            signature_names([head.task for head in heads])
        return common_type(types).new_mixed_model(encoder, heads)

    def report(self, job: Job) -> str:
        model: Any = job.model
        per_task = format_per_task_report(job.model, job.trained, len(model.head_of))
        return f"{super().report(job)}\n{per_task}"

    def assign_start(self, initial: InitialAdapter, plan: Plan, model: EncoderModel) -> None:
        initial_weights.assign(initial, model, plan.base.fingerprint(), plan.tasks)

    def report_start(self, initial: InitialAdapter, plan: Plan, model: EncoderModel) -> str:
        return initial_weights.report(initial, plan.tasks)

    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        batches = plan.batches
        features = mixed_features(cast(Sequence[PlacedData], plan.tasks))
        rows = plan_mixture(
            [task.count for task in plan.tasks],
            features.lengths,
            batches.train,
            plan.training.steps,
            batches.seed,
            batches.temperature,
            batches.epochs,
            batches.group_by_length if batches.pad_to else None,
        )
        return self.gather(features, rows[start:], batches.max_seq_length, batches.pad_to, share)

    def adapter_config(self, job: Job) -> dict[str, Any]:
        tasks = [saved_task(job, task) for task in job.plan.tasks]
        average = job.record.get("eval", {}).get(AVERAGE)
        metric = {"name": "average", "value": average, "split": "dev"}
        return self.describe_adapter(job, **whole(tasks, None if average is None else metric))


def with_average(plan: Plan, results: Mapping[str, float]) -> dict[str, float]:
    """Returns the results of each task, and `eval_average`, the mean of their first metrics."""
    return {**results, AVERAGE: statistics.mean(results[name] for name in plan.metrics)}
