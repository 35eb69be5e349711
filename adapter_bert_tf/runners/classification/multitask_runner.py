"""Runs of several tasks of tables that are trained together: classes and scores."""

from typing import Any

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.batches import gather_batches
from adapter_bert_tf.run.plan import Job, Plan
from adapter_bert_tf.runners.classification.chosen_task import task_of
from adapter_bert_tf.runners.classification.multitask_data import read_tasks
from adapter_bert_tf.runners.classification.runner import ClassificationRunner
from adapter_bert_tf.runners.classification.saved_adapter import check_mixed_splits, check_task
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.runners.multitask import initial_weights
from adapter_bert_tf.runners.multitask.runner import MultitaskRunner, with_average
from adapter_bert_tf.store import SavedAdapter


class MultitaskClassification(MultitaskRunner, ClassificationRunner):
    """Classification and regression tasks that are trained together."""

    gather = staticmethod(gather_batches)

    def check_one(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        task = task_of(config)
        if saved:
            check_task(saved, task, config.data.split_seed)
            if config.actions.do_eval:
                check_mixed_splits(saved, task)

    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[ClassificationData, ...]:
        return read_tasks(config, vocabulary, saved)

    def starts_with_head(self, plan: Plan, task: ClassificationData) -> bool:
        initial = plan.initial_adapter
        return initial is not None and initial_weights.has_head(initial, task)

    def rescale_head(
        self, model: Any, task: ClassificationData, mean: float, deviation: float
    ) -> None:
        model.rescale_head(task.name, mean, deviation)

    def evaluate(self, job: Job) -> dict[str, float]:
        return with_average(job.plan, super().evaluate(job))
