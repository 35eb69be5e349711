"""Runs of `run_tagger.py`: a tag for each word."""

import dataclasses
from collections.abc import Sequence
from typing import cast

import numpy as np
import tensorflow as tf

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import ActionsConfig
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.tagging.batches import (
    eval_batches,
    eval_plan,
    train_batches,
)
from adapter_bert_tf.errors import Conflict
from adapter_bert_tf.heads.tag_decoding import DecodedTags, decode
from adapter_bert_tf.heads.tag_windows import MergedWindows
from adapter_bert_tf.run.plan import Job, Plan
from adapter_bert_tf.run.result_files import write_details_file, write_metrics
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.run.task_runner import InputBatches, TaskRunner
from adapter_bert_tf.runners.tagging import reading, result_files
from adapter_bert_tf.runners.tagging.dev_set import TagSet
from adapter_bert_tf.runners.tagging.task_data import TagData, data_name
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.tasks import tag_metrics
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.progress import RowProgress


@dataclasses.dataclass(frozen=True)
class Predicted:
    """The predictions of a split.

    Args:
      logits: of each sentence, float32 `[words, tags]`; masked for words without pieces.
      decoded: tags of each sentence.
    """

    logits: Sequence[np.ndarray]
    decoded: list[DecodedTags]

    @property
    def tags(self) -> list[tuple[str, ...]]:
        """The tags of each sentence, IOB2 or plain."""
        return [sentence.tags for sentence in self.decoded]


class TaggingRunner(TaskRunner):
    """Tags of words: names, parts of speech."""

    uses_pooler = False

    def check(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        if config.data.task_name:
            raise Conflict(
                "--task_name lists several taggers that are trained together: NAME=FOLDER,NAME="
                "FOLDER, or a YAML file of tasks. Received one: "
                f"{preview(config.data.task_name)}. Leave it out; --adapter_name names the task."
            )
        if saved:
            reading.check_saved(saved)

    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[TagData, ...]:
        return (reading.read(config, vocabulary, saved),)

    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        features = cast(TagData, plan.only_task).training_features
        return plan.train_batches(train_batches, features, start, share)

    def finish_training(self, job: Job) -> None:
        return

    def is_evaluated(self, actions: ActionsConfig, tasks: Sequence[TaskData]) -> bool:
        return actions.do_eval

    def evaluate(self, job: Job) -> dict[str, float]:
        """Returns the scores of the dev set, from 0 to 1; see `tag_metrics.evaluate`."""
        results: dict[str, float] = {}
        for task in data_of(job.plan):
            predicted = _predict(job, task, "dev", job.plan.batches.evaluate)
            job.evaluated[task.name] = predicted
            results |= _score(task, "dev", predicted, task.prefix("eval"))
        return results

    def write_details(self, job: Job) -> None:
        folder = job.plan.output.folder
        for task in data_of(job.plan):
            predicted = cast(Predicted, job.evaluated[task.name])
            details = result_files.details(task, "dev", predicted.decoded, predicted.logits)
            name = f"{task.file_prefix}eval_details"
            write_details_file(folder, name, task.name, "dev", details)

    def table_name(self, config: RunConfig) -> str:
        return data_name(config)

    def dev_set(self, plan: Plan) -> TagSet:
        return TagSet(plan)

    def dev_batches(self, plan: Plan) -> InputBatches:
        batches = plan.batches
        for task in data_of(plan):
            features = task.inputs("dev")
            size = plan.limit_batch(batches.evaluate, len(features))
            rows = eval_plan(features, size, batches.pad_to)
            inputs = eval_batches(features, rows, batches.max_seq_length, batches.pad_to)
            yield from zip(inputs, (rows >= 0).sum(-1).tolist(), strict=True)

    def predict(self, job: Job) -> None:
        """Writes tags and entities of test files, and their scores if their tags are known."""
        results: dict[str, float] = {}
        folder = job.plan.output.folder
        for task in data_of(job.plan):
            predicted = _predict(job, task, "test", job.plan.batches.predict)
            if job.plan.writes:
                result_files.write_predictions(folder, task, predicted.logits)
            if "test" in task.tagged:
                results |= _score(task, "test", predicted, task.prefix("test"))
        if results:
            job.record["test"] = results
            if job.plan.writes:
                write_metrics(folder, result_files.METRICS, "Test results", results)

    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        return result_files.names_of(cast(Sequence[TagData], tasks))


def data_of(plan: Plan) -> tuple[TagData, ...]:
    """Returns the tasks of a plan as this runner reads them."""
    return cast(tuple[TagData, ...], plan.tasks)


def _score(task: TagData, split: str, predicted: Predicted, prefix: str) -> dict[str, float]:
    scores = tag_metrics.evaluate(task.splits[split].tags, predicted.tags, task.scheme)
    return {f"{prefix}_{name}": value for name, value in scores.items()}


def _predict(job: Job, task: TagData, split: str, batch_size: int) -> Predicted:
    """Returns the tags of all sentences of a split, in file order."""
    batches = job.plan.batches
    windows, sentences = task.windows[split], task.splits[split].words
    merged = MergedWindows(windows, [len(words) for words in sentences])
    if len(windows):
        features = task.inputs(split)
        plan = eval_plan(features, job.plan.limit_batch(batch_size, len(features)), batches.pad_to)
        parts = inference.predict(
            job.model,
            lambda share: eval_batches(
                features, plan, batches.max_seq_length, batches.pad_to, share
            ),
        )
        title = f"{task.name} {split}" if task.position else split
        progress = RowProgress(f"{title} windows", len(features))
        for rows, part in zip(plan, parts, strict=True):
            merged.add(rows[rows >= 0], task.own_logits(part[rows >= 0]))
            progress.add(len(rows))
    logits = merged.sentences()
    return Predicted(logits, decode(logits, task.labels, task.scheme, task.decoding))
