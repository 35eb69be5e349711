"""Runs of one task of classes or scores, of one or two texts."""

import dataclasses

import numpy as np
from absl import logging

from adapter_bert_tf.config.checks import check_task_name
from adapter_bert_tf.data.batches import eval_batches, eval_plan, train_batches
from adapter_bert_tf.data.tokenization import text_encoder
from adapter_bert_tf.run.result_files import write_metrics as write_metric_file
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.runners.classification import result_files
from adapter_bert_tf.runners.classification.reading import read_task, task_of
from adapter_bert_tf.runners.classification.saved_adapter import check_fold, check_task
from adapter_bert_tf.tasks import role
from adapter_bert_tf.training import frozen_layers, inference
from adapter_bert_tf.training.progress import RowProgress

TELLING = 8  # Fewer examples may well be of one class.


class ClassificationRunner(TaskRunner):
    """Classification and regression."""

    uses_pooler = True

    def check(self, config, saved):
        check_task_name(config)
        task = task_of(config)
        if saved:
            check_task(saved, task, config.data.split_seed)
            if config.actions.do_eval:
                check_fold(saved, config, task)

    def read(self, config, vocabulary, saved):
        task = task_of(config)
        encoder = text_encoder(vocabulary, config.data.max_seq_length)
        return (read_task(config, task, encoder, saved),)

    def train_batches(self, plan, start, share):
        batches = plan.batches
        return train_batches(
            plan.only_task.training_features,
            batches.train,
            plan.training.steps,
            batches.seed,
            batches.max_seq_length,
            batches.pad_to,
            batches.group_by_length,
            start,
            share,
        )

    def training_loss(self, tasks, class_weights, smoothing):
        if self.together:
            return super().training_loss(tasks, class_weights, smoothing)
        (task,) = tasks
        encoded = task.features["train"].labels.numpy()
        labels = task.labels_in_order
        return task.task_type.weighted_loss(class_weights, smoothing, labels, encoded)

    def begin_training(self, job):
        """A head that was saved speaks in the scores' own units, and is trained standardized."""
        task, start = job.plan.only_task, job.plan.initial_adapter
        if task.scale is not None and start and start.has_head_of(task):
            mean, deviation = task.scale.mean, task.scale.deviation
            job.model.rescale_head(-mean / deviation, 1 / deviation)
        if job.plan.cache_frozen:
            kept = dataclasses.replace(task, frozen=frozen_outputs(job))
            job.plan = dataclasses.replace(job.plan, tasks=(kept,))

    def finish_training(self, job):
        scale = job.plan.only_task.scale
        if scale is not None:
            job.model.rescale_head(scale.mean, scale.deviation)

    def is_evaluated(self, plan):
        return plan.actions.evaluate

    def evaluate(self, job):
        results: dict[str, float] = {}
        for task in job.plan.tasks:
            predictions = predict_all(job, task, "dev", job.plan.batches.evaluate)
            job.evaluated[task.name] = predictions
            results |= score(task, predictions, task.prefix("eval"))
        return results

    def write_details(self, job):
        for task in job.plan.tasks:
            before = f"{task.name}_" if self.together else ""
            folder = job.plan.paths.output_dir
            result_files.write_class_tables(folder, before, task, job.evaluated[task.name])
            result_files.write_details(folder, before, task, job.evaluated[task.name])

    def dev_batches(self, plan):
        batches = plan.batches
        for task in plan.tasks:
            for split in (name for name in task.features if role(name) == "dev"):
                features = task.asked(split)
                size = plan.limit_batch(batches.evaluate, len(features))
                rows = eval_plan(features, size, batches.pad_to)
                inputs = eval_batches(features, rows, batches.max_seq_length, batches.pad_to)
                yield from zip(inputs, (rows >= 0).sum(-1).tolist(), strict=True)

    def predict(self, job):
        """Writes probabilities and submission files, shows a few rows.

        Where the test labels are known, the metrics go to `test_metrics.txt`.
        """
        for task in job.plan.tasks:
            predictions = predict_all(job, task, "test", job.plan.batches.predict)
            if job.plan.writes:
                write_predictions(job, task, predictions)
                write_metrics(job, score(task, predictions, "test"))

    def output_files(self, tasks):
        return result_files.names_of(tasks, self.together)


def frozen_outputs(job):
    """What the frozen layers give for the training examples, computed before the first step."""
    plan, features = job.plan, job.plan.only_task.features["train"]
    batches = plan.batches
    size = plan.limit_batch(max(batches.train, batches.evaluate), len(features))
    return frozen_layers.frozen_outputs(
        job.model, features, size, batches.max_seq_length, batches.pad_to
    )


def write_predictions(job, task, predictions, before=""):
    """Writes the predictions of a task's test splits.

    Args:
      job: `Job`.
      task: `ClassificationData`.
      predictions: dict from split to predictions.
      before: what the names of files of probabilities begin with.
    """
    folder = job.plan.paths.output_dir
    for split, predicted in predictions.items():
        examples = task.examples[split]
        result_files.write_predictions(
            folder, task.task, split, examples.indices, predicted, before
        )
        result_files.print_predictions(task.task, examples, predicted)


def write_metrics(job, results):
    """Writes the metrics of test splits, where their labels are known."""
    if results:
        job.record["test"] = results
        folder = job.plan.paths.output_dir
        write_metric_file(folder, "test_metrics.txt", "Test results", results)


def score(task, predictions, prefix):
    """Metrics of all splits with labels: `eval_accuracy`, `eval_mismatched_accuracy`.

    Args:
      task: `ClassificationData`.
      predictions: dict from split to predictions.
      prefix: of the metrics' names.
    """
    results: dict[str, float] = {}
    for split, predicted in predictions.items():
        if len(predicted) >= TELLING and task.task_type.is_constant(predicted):
            logging.warning(
                "Every example of %s got the same prediction: nothing was learned yet.",
                task.shown(split),
            )
        if task.labels[split] is not None:
            known = task.task_type.is_known(task.labels[split])
            labels = task.labels[split][known]
            task.task_type.warn_of_few(task.shown(split), labels)
            scores = task.task_type.evaluate(task.task.metrics, labels, predicted[known])
            name = "_".join([prefix, *split.split("_")[1:]])
            results |= {f"{name}_{metric}": value for metric, value in scores.items()}
    return results


def predict_all(job, task, of_role, batch_size):
    """Dict from each split of a task with a role to its predictions."""
    return {
        split: predict(job, task, split, batch_size)
        for split in task.features
        if role(split) == of_role
    }


def predict(job, task, split, batch_size):
    """Class probabilities, float32 `[examples, labels]`, or scores `[examples]`, in file order."""
    batches, features = job.plan.batches, task.asked(split)
    plan = eval_plan(features, job.plan.limit_batch(batch_size, len(features)), batches.pad_to)
    parts = inference.predict(
        job.model,
        lambda share: eval_batches(features, plan, batches.max_seq_length, batches.pad_to, share),
    )
    progress = RowProgress(task.shown(split), len(features))
    rows = np.concatenate(list(progress.track(parts)))
    rows = in_file_order(rows, plan, len(features))
    rows = rows[:, task.among.columns] if task.among else rows
    return task.task_type.predictions(rows, task.scale if job.standardized else None)


def in_file_order(rows, plan, count):
    """Outputs of all batches `[batches * batch_size, ...]`, as `[count, ...]` in file order."""
    counts = plan.reshape(-1) >= 0  # The others fill up the last batch.
    in_order = np.empty_like(rows[:count])
    in_order[plan.reshape(-1)[counts]] = rows[counts]
    return in_order
