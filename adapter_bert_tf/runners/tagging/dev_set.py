"""The development set of tags, for analyses."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.data.tagging.batches import eval_batches, eval_plan, features_of
from adapter_bert_tf.data.tagging.samples import TagSamples
from adapter_bert_tf.data.tagging.schemes import PLAIN, entities
from adapter_bert_tf.heads.tag_decoding import decode
from adapter_bert_tf.heads.tag_windows import MergedWindows
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.runners.tagging.task_data import TagData


class TagAnswers(NamedTuple):
    """Tags of all sentences, IOB2 or plain, and their scores in samples of sentences."""

    tags: list[list[str]]
    samples: TagSamples


class TagSet:
    """The sentences of a dev set; an answer is right if all tags of its sentence are."""

    columns = ("place", "text", "tags")

    def __init__(self, plan: Plan) -> None:
        task = plan.only_task
        assert isinstance(task, TagData)
        self._task, self._batches = task, plan.batches
        self._part = task.splits["dev"]
        self._windows = task.windows["dev"]
        self._features = features_of(self._windows)
        size = plan.limit_batch(plan.batches.evaluate, len(self._features))
        self._plan = eval_plan(self._features, size, plan.batches.pad_to)
        self.title = f"{task.name}, windows"
        self.metric = task.metric_name
        self.rows = len(self._features)

    def __len__(self) -> int:
        return len(self._part)

    def batches(self, share: HostShard = WHOLE_BATCH) -> tf.data.Dataset:
        longest, pad_to = self._batches.max_seq_length, self._batches.pad_to
        return eval_batches(self._features, self._plan, longest, pad_to, share)

    def answers(self, logits: Sequence[np.ndarray]) -> TagAnswers:
        task = self._task
        merged = MergedWindows(self._windows, [len(words) for words in self._part.words])
        for rows, part in zip(self._plan, logits, strict=True):
            merged.add(rows[rows >= 0], part[rows >= 0])
        decoded = decode(merged.sentences(), task.labels, task.scheme, task.decoding)
        return self.from_json([list(sentence.tags) for sentence in decoded])

    def to_json(self, answers: TagAnswers) -> list[list[str]]:
        return answers.tags

    def from_json(self, values: list[list[str]]) -> TagAnswers:
        return TagAnswers(values, TagSamples(self._part.tags, values))

    def score(self, answers: TagAnswers, rows: np.ndarray | None = None) -> float:
        """The metric; that of all words or entities of the sentences together."""
        return answers.samples.score(self.metric, rows)

    def correct(self, answers: TagAnswers) -> np.ndarray:
        pairs = zip(self._part.tags, answers.tags, strict=True)
        return np.array([list(gold) == tags for gold, tags in pairs], bool)

    def answer_texts(self, answers: TagAnswers) -> list[str]:
        return [self._text(*pair) for pair in zip(self._part.words, answers.tags, strict=True)]

    def describe_example(self, number: int) -> list[str]:
        sentence = self._part.sentences[number]
        expected = self._text(sentence.words, sentence.tags or ())
        return [f"{self._part.path}:{sentence.line}", " ".join(sentence.words), expected]

    def _text(self, words: Sequence[str], tags: Sequence[str]) -> str:
        """Entities with their types, or all tags where they are plain."""
        if self._task.scheme == PLAIN:
            return " ".join(tags)
        found = (f"{' '.join(words[a:b])} ({kind})" for kind, a, b in entities(tags))
        return ", ".join(found) or "no entity"
