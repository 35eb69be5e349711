"""From flags to questions and their windows: what `run_squad.py` reads."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from absl import logging

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.data.questions import records, spans
from adapter_bert_tf.data.questions.squad import Question, read_articles, read_questions
from adapter_bert_tf.data.splits import stratified_subset
from adapter_bert_tf.data.tfds import read_tfds_squad
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.runners.questions import checks
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.task_types.spans import SPANS, Spans
from adapter_bert_tf.tasks.span_decoding import DecodingSettings
from adapter_bert_tf.tasks.squad_metrics import count_unlabelled


def task_name(config):
    """What a saved adapter says of its task."""
    return "squad_2" if config.questions.version_2_with_negative else "squad"


def check_saved(config, saved):
    """A saved adapter must be one of question answering. Raises `InputError`."""
    kind = type_of(saved.config)
    if kind is not SPANS:
        raise InputError(
            f"The saved adapter was trained for the task {preview(saved.config['task'])}. "
            f"Received: question answering. {kind.command.split()[0]} applies it."
        )


@dataclasses.dataclass
class SpanData:
    """Questions to train on and to ask, and their windows on disk.

    Args:
      learned: list of `Question` to train on.
      asked: list of `Question` to answer.
      articles: `data` of the file to answer, for the official evaluators.
      vocabulary: `Vocabulary`.
      settings: `SpanSettings`.
      decoding: `DecodingSettings`.
      folder: of the windows.
      name: the task's name.
      one: a question that is answered besides, or None.
      metric: key, in the results, of the metric to choose by.
    """

    learned: list[Question]
    asked: list[Question]
    articles: list[Any]
    vocabulary: Vocabulary
    settings: spans.SpanSettings
    decoding: DecodingSettings
    folder: str
    name: str
    one: Question | None
    metric: str = SPANS.metrics[0]

    task_type: ClassVar[Spans] = SPANS
    labels_in_order: ClassVar[tuple[str, ...]] = SPANS.labels

    @property
    def is_scorable(self) -> bool:
        """Whether there are questions to answer, and all have known answers."""
        return bool(self.articles) and not count_unlabelled(self.articles)

    @property
    def count(self) -> int:
        """Number of training questions; steps are counted in questions, as in the original."""
        return len(self.learned)

    def adapter_config(self) -> dict[str, Any]:
        """What a saved adapter says of its task."""
        return {
            "task": self.name,
            "head": SPANS.file_head,
            "labels": list(SPANS.labels),
            "regression": SPANS.file_regression,
            "inputs": dataclasses.asdict(self.settings) | dataclasses.asdict(self.decoding),
        }

    def record(self) -> dict[str, Any]:
        """What `run.json` says of the data."""
        parts = {"train": self.learned, "dev": self.asked}
        return {
            "labels": list(SPANS.labels),
            "data_sha256": self.digests,
            "examples": {name: len(part) for name, part in parts.items() if part},
        }

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """Dict from split to the digest of its questions."""
        parts = {"train": self.learned, "dev": self.asked}
        return {name: digest(part) for name, part in parts.items() if part}

    @functools.cached_property
    def encoder(self) -> TextEncoder:
        """The `TextEncoder`."""
        return TextEncoder(self.vocabulary, self.settings.max_seq_length)

    @functools.cached_property
    def train_records(self) -> records.Records:
        """`Records` of the training windows."""
        return self._records("train", self.learned, spans.training_windows)

    @functools.cached_property
    def eval_records(self) -> records.Records:
        """`Records` of the windows of the questions asked."""
        return self._records("dev", self.asked, spans.make_windows)

    def _records(
        self,
        split: str,
        questions: list[Question],
        make: Callable[..., Iterable[spans.Window]],
    ) -> records.Records:
        key = {
            "questions": self.digests[split],
            "vocabulary": self.vocabulary.sha256,
            "lower_case": self.vocabulary.lower_case,
            "windows": make.__name__,
            **dataclasses.asdict(self.settings),
        }
        return records.cached_records(
            self.folder, key, lambda: make(questions, self.encoder, self.settings)
        )


def digest(questions):
    """SHA-256 of questions, contexts and answers."""
    result = hashlib.sha256()
    for question in questions:
        result.update(repr(dataclasses.astuple(question)).encode("utf-8", "backslashreplace"))
    return result.hexdigest()


def read(config, vocabulary):
    """The `SpanData` of a run. Raises `InputError` for anything wrong with the files."""
    learned, asked, articles = [], [], []
    if config.actions.do_train:
        _, learned = _read(config, "train", config.questions.train_file)
        learned = _learnable(config, learned)
        if config.data.max_train_examples and config.data.max_train_examples < len(learned):
            kept = stratified_subset(
                [q.impossible for q in learned],
                config.data.max_train_examples,
                config.training.seed,
            )
            learned = [learned[i] for i in kept]
    if (config.actions.do_eval or config.actions.do_predict) and (
        config.questions.predict_file or config.data.data_source == "tfds"
    ):
        articles, asked = _read(config, "dev", config.questions.predict_file)
        _check_scorable(config, articles, asked)
    return SpanData(
        learned,
        asked,
        articles,
        vocabulary,
        spans.SpanSettings(
            config.data.max_seq_length,
            config.questions.doc_stride,
            config.questions.max_query_length,
        ),
        DecodingSettings(
            config.questions.n_best_size,
            config.questions.max_answer_length,
            config.questions.version_2_with_negative,
            config.questions.null_score_diff_threshold,
        ),
        config.questions.features_dir,
        task_name(config),
        None
        if config.questions.question is None
        else Question("", config.questions.question, config.questions.context),
        _metric(config),
    )


def warn(data, train, dev):
    """Warns of what is odd about the questions.

    Args:
      data: `SpanData`.
      train, dev: what to call their sources.
    """
    for source, questions in ((train, data.learned), (dev, data.asked)):
        checks.warn_of_cut(questions, data.encoder, data.settings.max_query_length, source)
    checks.warn_of_seen(data.learned, data.asked, dev)
    checks.warn_of_misplaced(data.asked, data.articles, dev)


def _metric(config):
    known, metric = SPANS.metrics, config.evaluation.metric
    if metric not in (None, *known):
        raise InputError(
            f"--metric of questions is one of {list(known)}. Received: {preview(metric)}"
        )
    return metric or known[0]


def _read(config, split, path):
    if config.data.data_source == "tfds":
        path = "squad_v2" if config.questions.version_2_with_negative else "squad"
        articles = read_tfds_squad(path, config.data.data_dir, split)
    else:
        if str(path).endswith(".gz"):
            raise InputError(f"{path} is packed, and questions are read as JSON: gunzip it first.")
        articles = read_articles(path)
    questions = read_questions(articles, path)
    if any(q.impossible for q in questions) and not config.questions.version_2_with_negative:
        raise InputError(f"{path} has questions without an answer: use --version_2_with_negative.")
    return articles, questions


def _learnable(config, questions):
    """Without the questions that say neither an answer nor that there is none; these are logged."""
    source = config.questions.train_file or "The training data"
    kept = [q for q in questions if q.answers or q.impossible]
    left = [str(q.id) for q in questions if not (q.answers or q.impossible)]
    if not kept:
        raise InputError(f"{source}: no question has an answer to learn from.")
    if left:
        logging.warning(
            "%s: %d of %d questions are left out of training, as they have no answer: %s",
            source,
            len(left),
            len(questions),
            ", ".join(left[:5]),
        )
    return kept


def _check_scorable(config, articles, asked):
    """With --do_eval every question must be labelled. Raises `InputError`."""
    unlabelled = count_unlabelled(articles)
    what = (
        f"{config.questions.predict_file}: {unlabelled} of {len(asked)} questions have neither "
        "answers nor the mark of having none"
    )
    if config.actions.do_eval and unlabelled:
        raise InputError(f"{what}, so --do_eval cannot score them. Use --do_predict.")
    if 0 < unlabelled < len(asked):
        logging.warning("%s, so the answers are not scored.", what)
