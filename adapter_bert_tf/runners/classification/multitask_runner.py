"""The job of `run_classifier.py` of several tasks together: mixed batches, a head for each task."""

import statistics

from adapter_bert_tf.data.batches import gather_batches
from adapter_bert_tf.data.mixture import plan_mixture
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.mixed_classifier import MixedClassifier
from adapter_bert_tf.run.task_runner import saved_task
from adapter_bert_tf.runners.classification import multitask_init
from adapter_bert_tf.runners.classification.multitask_data import (
    configs_of,
    mixed_features,
    read_tasks,
)
from adapter_bert_tf.runners.classification.reading import task_of
from adapter_bert_tf.runners.classification.runner import (
    ClassificationRunner,
    predict_all,
    score,
    write_metrics,
    write_predictions,
)
from adapter_bert_tf.runners.classification.saved_adapter import check_divisions, check_task
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.serving.multitask import export_together, signature_names
from adapter_bert_tf.store.directory import with_task_config
from adapter_bert_tf.store.multitask import head_among, heads_of, is_several, whole
from adapter_bert_tf.training.parameter_report import format_per_task_report
from adapter_bert_tf.training.tuning import MULTITASK_METHODS

AVERAGE = "eval_average"


class MultitaskRunner(ClassificationRunner):
    """Classification and regression tasks that are trained together."""

    together = True

    def check(self, config, saved):
        if saved and not is_several(saved.config):
            raise InputError(
                f"The saved adapter is of one task, {preview(saved.config['task'])}. Received: "
                f"--task_name={config.data.task_name}, of several. Name that one."
            )
        for name, own in configs_of(config).items():
            try:
                task = task_of(own)
            except InputError as error:
                raise InputError(f"The task {name!r}: {error}", *error.arguments) from error
            if saved:
                saved_one = with_task_config(saved, name)
                check_task(saved_one, task, own.data.split_seed)
                if config.actions.do_eval:
                    check_divisions(saved_one, task)

    def read(self, config, vocabulary, saved):
        return read_tasks(config, vocabulary, saved)

    def task_names(self, config):
        return tuple(configs_of(config))

    def check_method(self, method, start):
        if not method.tuning.of_several_tasks:
            raise InputError(
                f"Several tasks are trained together by {', '.join(MULTITASK_METHODS)}. Received: "
                f"{method.tuning.method}."
            )

    def new_model(self, plan, encoder):
        heads = heads_of(plan.saved.config) if plan.saved else [_head_of(t) for t in plan.tasks]
        if plan.actions.export:  # Before the first step, and not after the last.
            signature_names([head.task for head in heads])
        return MixedClassifier(encoder, heads, dropout=encoder.config["output_dropout"])

    def report(self, job):
        tasks = len(job.model.head_of)
        return f"{super().report(job)}\n{format_per_task_report(job.model, job.trained, tasks)}"

    def assign_start(self, plan, model):
        multitask_init.assign(plan.initial_adapter, model, plan.base.fingerprint(), plan.tasks)

    def report_start(self, plan, model):
        return multitask_init.report(plan.initial_adapter, plan.tasks)

    def train_batches(self, plan, start, share):
        batches, features = plan.batches, mixed_features(plan.tasks)
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

    def begin_training(self, job):
        """Heads that were saved speak in the scores' own units, and are trained standardized."""
        start = job.plan.initial_adapter
        for task in job.plan.tasks:
            if task.scale and start and multitask_init.has_head(start, task):
                mean, deviation = task.scale.mean, task.scale.deviation
                job.model.rescale_head(task.name, -mean / deviation, 1 / deviation)

    def finish_training(self, job):
        for task in (task for task in job.plan.tasks if task.scale):
            job.model.rescale_head(task.name, task.scale.mean, task.scale.deviation)

    def evaluate(self, job):
        """The results of each task, and `eval_average`, the mean of their first metrics."""
        results = super().evaluate(job)
        return results | {AVERAGE: statistics.mean(results[name] for name in job.plan.metrics)}

    def predict(self, job):
        """As of one task, in files whose names begin with the task's."""
        results: dict[str, float] = {}
        for task in job.plan.tasks:
            predictions = predict_all(job, task, "test", job.plan.batches.predict)
            if job.plan.writes:
                write_predictions(job, task, predictions, f"{task.name}_")
            results |= score(task, predictions, task.prefix("test"))
        if job.plan.writes:
            write_metrics(job, results)

    def adapter_config(self, job):
        tasks = [saved_task(job, task) for task in job.plan.tasks]
        average = job.record.get("eval", {}).get(AVERAGE)
        metric = average is not None and {"name": "average", "value": average, "split": "dev"}
        return self.describe_adapter(job, **whole(tasks, metric or None))

    def export(self, job):
        plan = job.plan
        export_together(
            plan.paths.export_dir, job.model, self.exported_config(job), plan.base.vocabulary
        )
        print(f"SavedModel: {plan.paths.export_dir}", flush=True)


def _head_of(task):
    return head_among(task.name, task.task_type, task.labels_in_order)
