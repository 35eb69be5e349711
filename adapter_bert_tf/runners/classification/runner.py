"""Runs of tasks whose examples are rows of tables: one task, and the base of several."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import tensorflow as tf
from absl import logging

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import ActionsConfig
from adapter_bert_tf.config.sections.training import TrainingConfig
from adapter_bert_tf.data.batches import eval_batches, eval_plan, train_batches
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.on_disk.batches import train_batches as stored_batches
from adapter_bert_tf.data.tokenization import text_encoder
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.run.plan import Job, Plan
from adapter_bert_tf.run.result_files import write_metrics
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.run.task_runner import InputBatches, TaskRunner
from adapter_bert_tf.runners.classification import result_files
from adapter_bert_tf.runners.classification.chosen_task import task_of
from adapter_bert_tf.runners.classification.dev_set import ClassSet, in_file_order
from adapter_bert_tf.runners.classification.large_tables import is_stored
from adapter_bert_tf.runners.classification.reading import adapter_name, read_task
from adapter_bert_tf.runners.classification.saved_adapter import check_fold, check_task
from adapter_bert_tf.runners.classification.stored_rows import read_stored
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.tasks import role
from adapter_bert_tf.training import frozen_layers, inference
from adapter_bert_tf.training.progress import RowProgress

FEW = 8  # Fewer examples may all have the same label.


class ClassificationRunner(TaskRunner):
    """Classification, regression and multi-label tasks."""

    uses_pooler = True

    def check(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        task = task_of(config)
        if saved:
            check_task(saved, task, config.data.split_seed)
            if config.actions.do_eval:
                check_fold(saved, config, task)

    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[ClassificationData, ...]:
        task = task_of(config)
        encoder = text_encoder(vocabulary, config.data.max_seq_length)
        if is_stored(config, task, saved):
            return (read_stored(config, task, encoder, vocabulary, saved),)
        return (read_task(config, task, encoder, saved),)

    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        (task,) = data_of(plan)
        if task.stored:
            rows = task.stored.training_rows
            return plan.train_batches(stored_batches, rows, start, share)
        return plan.train_batches(train_batches, task.training_features, start, share)

    def training_loss(self, tasks: Sequence[TaskData], config: TrainingConfig) -> Loss | None:
        if self.together:
            return super().training_loss(tasks, config)
        (task,) = cast(Sequence[ClassificationData], tasks)
        weights, smoothing = config.class_weights, config.label_smoothing
        loss, labels = task.task_type.weighted_loss, task.labels_in_order
        if task.stored:
            counts = np.array(task.stored.table.facts.label_counts)
            return loss(weights, smoothing, labels, task.stored.labels, counts)
        return loss(weights, smoothing, labels, task.features["train"].labels.numpy())

    def begin_training(self, job: Job) -> None:
        """Standardizes the outputs of saved heads, and computes frozen layers once."""
        for task in data_of(job.plan):
            if task.scale and self.starts_with_head(job.plan, task):
                mean, deviation = task.scale.mean, task.scale.deviation
                self.rescale_head(job.model, task, -mean / deviation, 1 / deviation)
        if job.plan.cache_frozen:
            (task,) = data_of(job.plan)
            cached = dataclasses.replace(task, frozen=_frozen_outputs(job, task))
            job.plan = dataclasses.replace(job.plan, tasks=(cached,))

    def finish_training(self, job: Job) -> None:
        """Returns the outputs of heads from standardized to original scores."""
        for task in data_of(job.plan):
            if task.scale:
                self.rescale_head(job.model, task, task.scale.mean, task.scale.deviation)

    def starts_with_head(self, plan: Plan, task: ClassificationData) -> bool:
        """Whether the training of a task starts with a saved head."""
        return plan.initial_adapter is not None and plan.initial_adapter.has_head_of(task)

    def rescale_head(
        self, model: Any, task: ClassificationData, mean: float, deviation: float
    ) -> None:
        """Makes the head of a task return `deviation` times its output plus `mean`."""
        model.rescale_head(mean, deviation)

    def is_evaluated(self, actions: ActionsConfig, tasks: Sequence[TaskData]) -> bool:
        return actions.do_eval

    def evaluate(self, job: Job) -> dict[str, float]:
        results: dict[str, float] = {}
        for task in data_of(job.plan):
            predictions = _predict_all(job, task, "dev", job.plan.batches.evaluate)
            job.evaluated[task.name] = predictions
            results |= _score(task, predictions, task.prefix("eval"))
        return results

    def write_details(self, job: Job) -> None:
        for task in data_of(job.plan):
            predictions = job.evaluated[task.name]
            result_files.write_evaluation(job.plan.output.folder, task, predictions)

    def table_name(self, config: RunConfig) -> str:
        return adapter_name(config) or TaskRunner.table_name(self, config)

    def dev_set(self, plan: Plan) -> ClassSet:
        return ClassSet(plan)

    def dev_batches(self, plan: Plan) -> InputBatches:
        batches = plan.batches
        for task in data_of(plan):
            for split in (name for name in task.features if role(name) == "dev"):
                features = task.inputs(split)
                size = plan.limit_batch(batches.evaluate, len(features))
                rows = eval_plan(features, size, batches.pad_to)
                inputs = eval_batches(features, rows, batches.max_seq_length, batches.pad_to)
                yield from zip(inputs, (rows >= 0).sum(-1).tolist(), strict=True)

    def predict(self, job: Job) -> None:
        """Writes probabilities and submission files, and prints a few rows.

        If test labels are known, the metrics go to `test_metrics.txt`.
        """
        results: dict[str, float] = {}
        folder = job.plan.output.folder
        for task in data_of(job.plan):
            predictions = _predict_all(job, task, "test", job.plan.batches.predict)
            if job.plan.writes:
                result_files.write_test_results(folder, task, predictions)
            results |= _score(task, predictions, task.prefix("test"))
        if results and job.plan.writes:
            job.record["test"] = results
            write_metrics(folder, "test_metrics.txt", "Test results", results)

    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        return result_files.names_of(cast(Sequence[ClassificationData], tasks))


def data_of(plan: Plan) -> tuple[ClassificationData, ...]:
    """Returns the tasks of a plan as this runner reads them."""
    return cast(tuple[ClassificationData, ...], plan.tasks)


def _frozen_outputs(job: Job, task: ClassificationData) -> frozen_layers.FrozenOutputs:
    batches, features = job.plan.batches, task.features["train"]
    size = job.plan.limit_batch(max(batches.train, batches.evaluate), len(features))
    return frozen_layers.frozen_outputs(
        job.model, features, size, batches.max_seq_length, batches.pad_to
    )


def _score(
    task: ClassificationData, predictions: Mapping[str, np.ndarray], prefix: str
) -> dict[str, float]:
    """Returns the metrics of all splits with labels, such as `eval_mismatched_accuracy`."""
    results: dict[str, float] = {}
    for split, predicted in predictions.items():
        if len(predicted) >= FEW and task.task_type.is_constant(predicted):
            logging.warning(
                "All examples of %s have the same prediction: nothing was learned yet.",
                task.split_title(split),
            )
        encoded = task.labels[split]
        if encoded is not None:
            known = task.task_type.is_known(encoded)
            task.task_type.warn_of_few(task.split_title(split), encoded[known])
            scores = task.task_type.evaluate(task.task.metrics, encoded[known], predicted[known])
            name = result_files.with_suffix(prefix, split)
            results |= {f"{name}_{metric}": value for metric, value in scores.items()}
    return results


def _predict_all(
    job: Job, task: ClassificationData, split_role: str, batch_size: int
) -> dict[str, np.ndarray]:
    return {
        split: _predict(job, task, split, batch_size)
        for split in task.features
        if role(split) == split_role
    }


def _predict(job: Job, task: ClassificationData, split: str, batch_size: int) -> np.ndarray:
    """Returns probabilities `[examples, labels]` or scores `[examples]`, float32, in file order."""
    batches, features = job.plan.batches, task.inputs(split)
    plan = eval_plan(features, job.plan.limit_batch(batch_size, len(features)), batches.pad_to)
    parts = inference.predict(
        job.model,
        lambda share: eval_batches(features, plan, batches.max_seq_length, batches.pad_to, share),
    )
    progress = RowProgress(task.split_title(split), len(features))
    rows = np.concatenate(list(progress.track(parts)))
    rows = in_file_order(rows, plan, len(features))
    rows = rows[:, task.position.columns] if task.position else rows
    return task.task_type.predictions(rows, task.scale if job.standardized else None)
