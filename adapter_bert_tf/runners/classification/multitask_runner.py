"""Runs of several tasks that are trained together: mixed batches, a head for each task."""

import statistics
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.batches import gather_batches
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.mixture import plan_mixture
from adapter_bert_tf.errors import Conflict, Mismatch, error_context
from adapter_bert_tf.heads.mixed_classifier import MixedClassifier
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.plan import Job, Method, Plan
from adapter_bert_tf.run.task_runner import saved_task
from adapter_bert_tf.runners.classification import multitask_init
from adapter_bert_tf.runners.classification.chosen_task import task_of
from adapter_bert_tf.runners.classification.multitask_data import mixed_features, read_tasks
from adapter_bert_tf.runners.classification.runner import ClassificationRunner, data_of
from adapter_bert_tf.runners.classification.saved_adapter import check_mixed_splits, check_task
from adapter_bert_tf.runners.classification.task_configs import configs_of
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.serving.multitask import export_together, signature_names
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.directory import with_task_config
from adapter_bert_tf.store.multitask import head_among, heads_of, is_several, whole
from adapter_bert_tf.training.parameter_report import format_per_task_report
from adapter_bert_tf.training.tuning import MULTITASK_METHODS

AVERAGE = "eval_average"


class MultitaskRunner(ClassificationRunner):
    """Classification and regression tasks that are trained together."""

    together = True
    export_model = staticmethod(export_together)

    def check(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        if saved and not is_several(saved.config):
            raise Mismatch(
                f"The saved adapter was trained for one task, {preview(saved.config['task'])}. "
                f"Received: --task_name={config.data.task_name}. Name that task alone."
            )
        for name, own in configs_of(config, saved).items():
            with error_context(f"The task {name!r}"):
                task = task_of(own)
            if saved:
                task_adapter = with_task_config(saved, name)
                check_task(task_adapter, task, own.data.split_seed)
                if config.actions.do_eval:
                    check_mixed_splits(task_adapter, task)

    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[ClassificationData, ...]:
        return read_tasks(config, vocabulary, saved)

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
            heads = heads_of(plan.saved.config)
        else:
            tasks = data_of(plan)
            heads = [head_among(t.name, t.task_type, t.labels_in_order) for t in tasks]
        if plan.actions.do_export:  # Names are checked before the training.
            signature_names([head.task for head in heads])
        return MixedClassifier(encoder, heads, dropout=encoder.config["output_dropout"])

    def report(self, job: Job) -> str:
        model: Any = job.model
        per_task = format_per_task_report(job.model, job.trained, len(model.head_of))
        return f"{super().report(job)}\n{per_task}"

    def assign_start(self, initial: InitialAdapter, plan: Plan, model: EncoderModel) -> None:
        multitask_init.assign(initial, model, plan.base.fingerprint(), plan.tasks)

    def report_start(self, initial: InitialAdapter, plan: Plan, model: EncoderModel) -> str:
        return multitask_init.report(initial, plan.tasks)

    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        batches, features = plan.batches, mixed_features(data_of(plan))
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
        return gather_batches(features, rows[start:], batches.max_seq_length, batches.pad_to, share)

    def starts_with_head(self, plan: Plan, task: ClassificationData) -> bool:
        initial = plan.initial_adapter
        return initial is not None and multitask_init.has_head(initial, task)

    def rescale_head(
        self, model: Any, task: ClassificationData, mean: float, deviation: float
    ) -> None:
        model.rescale_head(task.name, mean, deviation)

    def evaluate(self, job: Job) -> dict[str, float]:
        """Returns the results of each task, and `eval_average`, the mean of their first metrics."""
        results = super().evaluate(job)
        return results | {AVERAGE: statistics.mean(results[name] for name in job.plan.metrics)}

    def adapter_config(self, job: Job) -> dict[str, Any]:
        tasks = [saved_task(job, task) for task in job.plan.tasks]
        average = job.record.get("eval", {}).get(AVERAGE)
        metric = {"name": "average", "value": average, "split": "dev"}
        return self.describe_adapter(job, **whole(tasks, None if average is None else metric))
