"""Runs of `run_tagger.py`: a tag for each word."""

import dataclasses
from collections.abc import Sequence
from typing import cast

import numpy as np
import tensorflow as tf

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.tagging.batches import (
    eval_batches,
    eval_plan,
    features_of,
    train_batches,
)
from adapter_bert_tf.heads.tag_decoding import DecodedTags, decode
from adapter_bert_tf.heads.tag_windows import MergedWindows
from adapter_bert_tf.run.plan import Job, Plan
from adapter_bert_tf.run.result_files import write_details_file, write_metrics
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.run.task_runner import InputBatches, TaskRunner
from adapter_bert_tf.runners.tagging import reading, result_files
from adapter_bert_tf.runners.tagging.dev_set import TagSet
from adapter_bert_tf.runners.tagging.task_data import TagData, data_name
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
        if saved:
            reading.check_saved(saved)

    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[TagData, ...]:
        return (reading.read(config, vocabulary, saved),)

    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        batches = plan.batches
        return train_batches(
            data_of(plan).training_features,
            batches.train,
            plan.training.steps,
            batches.seed,
            batches.max_seq_length,
            batches.pad_to,
            batches.group_by_length,
            start,
            share,
        )

    def finish_training(self, job: Job) -> None:
        return

    def is_evaluated(self, plan: Plan) -> bool:
        return plan.actions.do_eval

    def evaluate(self, job: Job) -> dict[str, float]:
        """Returns the scores of the dev set, from 0 to 1; see `tag_metrics.evaluate`."""
        predicted = _predict(job, "dev", job.plan.batches.evaluate)
        job.evaluated["dev"] = predicted
        return _score(data_of(job.plan), "dev", predicted, "eval")

    def write_details(self, job: Job) -> None:
        task, predicted = data_of(job.plan), cast(Predicted, job.evaluated["dev"])
        details = result_files.details(task, "dev", predicted.decoded, predicted.logits)
        write_details_file(job.plan.output.folder, "eval_details", task.name, "dev", details)

    def table_name(self, config: RunConfig) -> str:
        return data_name(config)

    def dev_set(self, plan: Plan) -> TagSet:
        return TagSet(plan)

    def dev_batches(self, plan: Plan) -> InputBatches:
        features, batches = features_of(data_of(plan).windows["dev"]), plan.batches
        size = plan.limit_batch(batches.evaluate, len(features))
        rows = eval_plan(features, size, batches.pad_to)
        inputs = eval_batches(features, rows, batches.max_seq_length, batches.pad_to)
        yield from zip(inputs, (rows >= 0).sum(-1).tolist(), strict=True)

    def predict(self, job: Job) -> None:
        """Writes tags and entities of the test file, and its scores if its tags are known."""
        task = data_of(job.plan)
        predicted = _predict(job, "test", job.plan.batches.predict)
        folder = job.plan.output.folder
        if job.plan.writes:
            result_files.write_predictions(folder, task, predicted.logits)
        if "test" in task.tagged:
            results = _score(task, "test", predicted, "test")
            job.record["test"] = results
            if job.plan.writes:
                write_metrics(folder, "test_metrics.txt", "Test results", results)

    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        return result_files.NAMES


def data_of(plan: Plan) -> TagData:
    """Returns the task of a plan as this runner reads it."""
    return cast(TagData, plan.only_task)


def _score(task: TagData, split: str, predicted: Predicted, prefix: str) -> dict[str, float]:
    scores = tag_metrics.evaluate(task.splits[split].tags, predicted.tags, task.scheme)
    return {f"{prefix}_{name}": value for name, value in scores.items()}


def _predict(job: Job, split: str, batch_size: int) -> Predicted:
    """Returns the tags of all sentences of a split, in file order."""
    task, batches = data_of(job.plan), job.plan.batches
    windows, sentences = task.windows[split], task.splits[split].words
    merged = MergedWindows(windows, [len(words) for words in sentences])
    if len(windows):
        features = features_of(windows)
        plan = eval_plan(features, job.plan.limit_batch(batch_size, len(features)), batches.pad_to)
        parts = inference.predict(
            job.model,
            lambda share: eval_batches(
                features, plan, batches.max_seq_length, batches.pad_to, share
            ),
        )
        progress = RowProgress(f"{split} windows", len(features))
        for rows, part in zip(plan, parts, strict=True):
            merged.add(rows[rows >= 0], part[rows >= 0])
            progress.add(len(rows))
    logits = merged.sentences()
    return Predicted(logits, decode(logits, task.labels, task.scheme, task.decoding))
