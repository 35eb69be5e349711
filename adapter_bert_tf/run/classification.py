"""The job of `run_classifier.py`: classes or scores of one or two texts."""

import numpy as np
import tensorflow as tf
from absl import logging

from adapter_bert_tf.data.batches import eval_batches, eval_plan, train_batches
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.run import inputs, outputs, settings, sweep
from adapter_bert_tf.run.job import Kind
from adapter_bert_tf.tasks import metrics, role
from adapter_bert_tf.training import inference


def run(flags):
    """Runs the command. Raises `InputError` for what the user can mend, before training.

    Args:
      flags: `absl.flags.FLAGS`, parsed.
    """
    sweep.run(Classification(), flags)


class Classification(Kind):
    """Classification and regression."""

    def main_metric(self, flags):
        return f"eval_{inputs.task_of(flags).metrics[0]}"

    def check(self, flags, saved):
        if not flags.task_name:
            raise InputError("--task_name is missing. For example --task_name=MRPC.")
        task = inputs.task_of(flags)
        if saved:
            settings.check_task(saved, task, flags.split_seed)

    def read(self, flags, shared, saved):
        task = inputs.task_of(flags)
        if saved:
            return inputs.read_inputs(flags, task, shared.base(flags).vocabulary, saved)
        return shared.data(flags, lambda vocabulary: inputs.read_inputs(flags, task, vocabulary))

    def new_model(self, encoder, config, data):
        return Classifier(
            encoder,
            data.task.num_outputs,
            dropout=config.output_dropout,
            regression=data.task.regression,
        )

    def train_batches(self, job, start, share):
        flags, features = job.flags, job.data.features["train"]
        if job.data.task.regression:
            features, _, _ = inputs.standardize(features)
        return train_batches(
            features,
            flags.train_batch_size,
            job.steps,
            flags.seed,
            flags.max_seq_length,
            settings.pad_to(flags),
            start,
            share,
        )

    def finish_training(self, job):
        if job.data.task.regression:
            _, mean, deviation = inputs.standardize(job.data.features["train"])
            job.model.rescale_head(mean, deviation)

    def evaluate(self, job):
        return score(job, predict_all(job, "dev", job.flags.eval_batch_size), "eval")

    def predict(self, job):
        """Writes probabilities and submission files, shows a few rows.

        Where the test labels are known, the metrics go to `test_metrics.txt`.
        """
        folder, task = job.flags.output_dir, job.data.task
        predictions = predict_all(job, "test", job.flags.predict_batch_size)
        if not job.writes:
            return
        for split, predicted in predictions.items():
            examples = job.data.examples[split]
            outputs.write_predictions(folder, task, split, examples.indices, predicted)
            outputs.print_predictions(task, examples, predicted)
        results = score(job, predictions, "test")
        if results:
            job.record["test"] = results
            outputs.write_metrics(folder, "test_metrics.txt", "Test results", results)

    def output_files(self, data):
        task = data.task
        splits = [split for layout in task.layouts for split in layout]
        names = {task.title, *map(task.submission, splits)}
        return ["test_results*.tsv", "test_metrics.txt", *(f"{name}.tsv" for name in names)]


def score(job, predictions, prefix):
    """Metrics of all splits with labels: `eval_accuracy`, `eval_mismatched_accuracy`."""
    results = {}
    for split, predicted in predictions.items():
        if metrics.is_constant(predicted):
            logging.warning(
                "Every example of %s got the same prediction: nothing was learned yet.", split
            )
        if job.data.labels[split] is not None:
            scores = metrics.evaluate(job.data.task.metrics, job.data.labels[split], predicted)
            name = "_".join([prefix, *split.split("_")[1:]])
            results |= {f"{name}_{metric}": value for metric, value in scores.items()}
    return results


def predict_all(job, of_role, batch_size):
    """Dict from each split with a role to its predictions."""
    return {
        split: predict(job, split, batch_size)
        for split in job.data.features
        if role(split) == of_role
    }


def predict(job, split, batch_size):
    """Class probabilities, float32 `[examples, labels]`, or scores `[examples]`, in file order."""
    length, pad_to = job.flags.max_seq_length, settings.pad_to(job.flags)
    features = job.data.features[split]
    plan = eval_plan(features, job.batch_size(batch_size), pad_to)
    rows = np.concatenate(
        list(
            inference.predict(
                job.model, lambda share: eval_batches(features, plan, length, pad_to, share)
            )
        )
    )
    if not job.data.task.regression:
        rows = tf.nn.softmax(rows).numpy()
    counts = plan.reshape(-1) >= 0  # The others fill up the last batch.
    in_order = np.empty_like(rows[: len(features)])
    in_order[plan.reshape(-1)[counts]] = rows[counts]
    return in_order[:, 0] if job.data.task.regression else in_order
