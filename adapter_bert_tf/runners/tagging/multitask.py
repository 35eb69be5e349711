"""Runs of several taggers that are trained together, each with its own tags."""

import dataclasses
from collections.abc import Sequence

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.tagging.batches import weighted_batches
from adapter_bert_tf.errors import error_context
from adapter_bert_tf.run.plan import Job
from adapter_bert_tf.runners.multitask.data import positions, require_distinct
from adapter_bert_tf.runners.multitask.runner import MultitaskRunner, with_average
from adapter_bert_tf.runners.multitask.task_configs import configs_of
from adapter_bert_tf.runners.tagging import reading
from adapter_bert_tf.runners.tagging.runner import TaggingRunner
from adapter_bert_tf.runners.tagging.task_data import TagData
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.directory import with_task_config
from adapter_bert_tf.task_types.tags import TAGS


class MultitaskTagging(MultitaskRunner, TaggingRunner):
    """Taggers that are trained together."""

    gather = staticmethod(weighted_batches)

    def check_one(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        if saved:
            reading.check_saved(saved)

    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[TagData, ...]:
        data: dict[str, TagData] = {}
        for name, own in configs_of(config, saved).items():
            with error_context(f"The task {name!r}"):
                task_adapter = with_task_config(saved, name) if saved else None
                data[name] = reading.read(own, vocabulary, task_adapter, f"{name}: ")
        places = positions(saved, data)
        tasks = [dataclasses.replace(t, position=places[name]) for name, t in data.items()]
        _check_distinct_results(tasks)
        return tuple(tasks)

    def evaluate(self, job: Job) -> dict[str, float]:
        return with_average(job.plan, super().evaluate(job))


def _check_distinct_results(tasks: Sequence[TagData]) -> None:
    """Raises `InputError` if two results have one name: strict_f1 of `a`, f1 of `a_strict`."""
    metrics = (*TAGS.metrics, *reading.PLAIN_METRICS)
    names = {task.name: {f"{task.prefix('eval')}_{name}" for name in metrics} for task in tasks}
    require_distinct("result", names)
