"""From settings to questions and their windows."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from absl import logging

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.questions import records, spans
from adapter_bert_tf.data.questions.squad import Question, read_articles, read_questions
from adapter_bert_tf.data.splits import stratified_subset
from adapter_bert_tf.data.tfds import read_tfds_squad
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError, Mismatch, Unsupported
from adapter_bert_tf.runners.questions import checks
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.task_types.spans import SPANS, Spans
from adapter_bert_tf.tasks import squad_metrics
from adapter_bert_tf.tasks.span_decoding import DecodingSettings


def task_name(config: RunConfig) -> str:
    """Returns the name of the task in a saved adapter."""
    return "squad_2" if config.questions.version_2_with_negative else "squad"


def check_saved(saved: SavedAdapter) -> None:
    """Raises `InputError` if a saved adapter does not answer questions."""
    task_type = type_of(saved.config)
    if task_type is not SPANS:
        raise Mismatch(
            f"The saved adapter was trained for the task {preview(saved.config['task'])}. "
            f"Received: question answering. {task_type.command.split()[0]} applies it."
        )


@dataclasses.dataclass
class SpanData:
    """Questions to train on and to answer, and their windows on disk; see `TaskData`.

    Args:
      training: questions to train on.
      questions: of the file to answer.
      articles: content of that file, for the official evaluators.
      settings: of the windows.
      decoding: how answers are chosen.
      folder: of the windows.
      name: of the task.
      single: a further question to answer, of `--question`, or None.
      metric: key, in the results, of the metric to choose by.
    """

    training: list[Question]
    questions: list[Question]
    articles: list[Any]
    vocabulary: Vocabulary
    settings: spans.SpanSettings
    decoding: DecodingSettings
    folder: str
    name: str
    single: Question | None
    metric: str = SPANS.metrics[0]

    task_type: ClassVar[Spans] = SPANS
    labels_in_order: ClassVar[tuple[str, ...]] = SPANS.labels

    @property
    def is_scorable(self) -> bool:
        """Whether there are questions to answer, and all have known answers."""
        return bool(self.articles) and not squad_metrics.count_unlabelled(self.articles)

    @property
    def count(self) -> int:
        """Number of training questions; steps are counted in questions, as in the original."""
        return len(self.training)

    def adapter_config(self) -> dict[str, Any]:
        """Returns the description of the task in a saved adapter."""
        return {
            "task": self.name,
            "head": SPANS.file_head,
            "labels": list(SPANS.labels),
            "regression": SPANS.file_regression,
            "inputs": dataclasses.asdict(self.settings) | dataclasses.asdict(self.decoding),
        }

    def with_dev_subset(self, most: int, seed: int) -> "SpanData":
        """Returns the data with at most `most` questions to answer, a stratified subset."""
        if most >= len(self.questions):
            return self
        rows = stratified_subset([q.impossible for q in self.questions], most, seed)
        questions = [self.questions[row] for row in rows]
        articles = squad_metrics.with_questions(self.articles, {q.id for q in questions})
        return dataclasses.replace(self, questions=questions, articles=articles)

    def record(self) -> dict[str, Any]:
        """Returns the description of the data in `run.json`."""
        return {
            "labels": list(SPANS.labels),
            "data_sha256": self.digests,
            "examples": {split: len(part) for split, part in self._splits().items()},
        }

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """Dict from split to the digest of its questions."""
        return {split: digest(part) for split, part in self._splits().items()}

    def _splits(self) -> dict[str, list[Question]]:
        splits = {"train": self.training, "dev": self.questions}
        return {split: part for split, part in splits.items() if part}

    @functools.cached_property
    def encoder(self) -> TextEncoder:
        """Encoder of the base's vocabulary and the length."""
        return TextEncoder(self.vocabulary, self.settings.max_seq_length)

    @functools.cached_property
    def train_records(self) -> records.Records:
        """Records of the training windows."""
        return self._records("train", self.training, spans.training_windows)

    @functools.cached_property
    def eval_records(self) -> records.Records:
        """Records of the windows of the questions to answer."""
        return self._records("dev", self.questions, spans.make_windows)

    def _records(
        self, split: str, questions: list[Question], make: Callable[..., Iterable[spans.Window]]
    ) -> records.Records:
        key = {
            "questions": self.digests[split],
            "vocabulary": self.vocabulary.sha256,
            "lower_case": self.vocabulary.lower_case,
            "tokenizer": self.vocabulary.tokenizer.differences(),
            "windows": make.__name__,
            **dataclasses.asdict(self.settings),
        }
        return records.cached_records(
            self.folder, key, lambda: make(questions, self.encoder, self.settings)
        )


def digest(questions: Iterable[Question]) -> str:
    """Returns the SHA-256 of questions, contexts and answers."""
    result = hashlib.sha256()
    for question in questions:
        result.update(repr(dataclasses.astuple(question)).encode("utf-8", "backslashreplace"))
    return result.hexdigest()


def read(config: RunConfig, vocabulary: Vocabulary) -> SpanData:
    """Reads the questions of a run. Raises `InputError` for anything wrong with the files."""
    data, actions, questions = config.data, config.actions, config.questions
    asks = actions.do_eval or actions.do_predict
    training = _read_training(config) if actions.do_train else []
    articles: list[Any] = []
    asked: list[Question] = []
    if asks and (questions.predict_file or data.data_source == "tfds"):
        articles, asked = _read_file(config, "dev", questions.predict_file)
        _check_scorable(config, articles, len(asked))
    single = None
    if questions.question is not None:
        single = Question("", questions.question, questions.context or "")
    return SpanData(
        training,
        asked,
        articles,
        vocabulary,
        spans.SpanSettings(data.max_seq_length, questions.doc_stride, questions.max_query_length),
        DecodingSettings(
            questions.n_best_size,
            questions.max_answer_length,
            questions.version_2_with_negative,
            questions.null_score_diff_threshold,
        ),
        questions.features_dir or "",
        task_name(config),
        single,
        _metric(config),
    )


def warn(data: SpanData, train: str, dev: str) -> None:
    """Warns of questions that are seen, cut or misplaced, in sources of these names."""
    for source, questions in ((train, data.training), (dev, data.questions)):
        checks.warn_of_cut(questions, data.encoder, data.settings.max_query_length, source)
    checks.warn_of_seen(data.training, data.questions, dev)
    checks.warn_of_misplaced(data.questions, data.articles, dev)


def _metric(config: RunConfig) -> str:
    known, metric = SPANS.metrics, config.evaluation.metric
    if metric not in (None, *known):
        raise InputError(
            f"--metric must be one of {list(known)} for questions. Received: {preview(metric)}"
        )
    return metric or known[0]


def _read_file(config: RunConfig, split: str, path: str | None) -> tuple[list[Any], list[Question]]:
    negative = config.questions.version_2_with_negative
    if config.data.data_source == "tfds":
        path = "squad_v2" if negative else "squad"
        articles = read_tfds_squad(path, config.data.data_dir, split)
    else:
        if str(path).endswith(".gz"):
            raise Unsupported(f"{path} is compressed; questions are plain JSON. Use gunzip first.")
        articles = read_articles(path)
    questions = read_questions(articles, path)
    if any(q.impossible for q in questions) and not negative:
        raise InputError(f"{path} has questions without an answer: use --version_2_with_negative.")
    return articles, questions


def _read_training(config: RunConfig) -> list[Question]:
    """Reads the training questions, without those that have no label, or a subset of them."""
    _, questions = _read_file(config, "train", config.questions.train_file)
    source = config.questions.train_file or "The training data"
    labelled = [q for q in questions if q.answers or q.impossible]
    unlabelled = [str(q.id) for q in questions if not (q.answers or q.impossible)]
    if not labelled:
        raise InputError(f"{source}: no question has an answer to learn from.")
    if unlabelled:
        logging.warning(
            "%s: %d of %d questions are left out of training, as they have no answer: %s",
            source,
            len(unlabelled),
            len(questions),
            ", ".join(unlabelled[:5]),
        )
    most = config.data.max_train_examples
    if most and most < len(labelled):
        impossible = [q.impossible for q in labelled]
        return [labelled[i] for i in stratified_subset(impossible, most, config.training.seed)]
    return labelled


def _check_scorable(config: RunConfig, articles: Sequence[Any], count: int) -> None:
    """Raises `InputError` if `--do_eval` has questions without a label."""
    unlabelled = squad_metrics.count_unlabelled(articles)
    problem = (
        f"{config.questions.predict_file}: {unlabelled} of {count} questions have neither answers "
        "nor is_impossible"
    )
    if config.actions.do_eval and unlabelled:
        raise InputError(f"{problem}, so --do_eval cannot score them. Use --do_predict.")
    if 0 < unlabelled < count:
        logging.warning("%s, so the answers are not scored.", problem)
