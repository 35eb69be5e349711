"""Runs of `run_squad.py`: answers as spans of a context."""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import tensorflow as tf
import tf_keras

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.checks import check_room
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import ActionsConfig
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.questions import records, spans
from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.run.plan import Job, Plan
from adapter_bert_tf.run.result_files import write_details_file
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.run.task_runner import InputBatches, TaskRunner
from adapter_bert_tf.runners.questions import checks, task_data
from adapter_bert_tf.runners.questions.answers import Answers, decode_answers
from adapter_bert_tf.runners.questions.dev_set import QuestionSet
from adapter_bert_tf.runners.questions.task_data import SpanData
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.tasks import squad_metrics
from adapter_bert_tf.tasks.span_decoding import Decoder
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.progress import RowProgress


class QuestionRunner(TaskRunner):
    """Extractive question answering, SQuAD 1.1 and 2.0."""

    uses_pooler = False

    def check(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        if saved:
            task_data.check_saved(saved)
        check_room(config)  # The lengths may be those of the saved adapter.

    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[SpanData, ...]:
        data = task_data.read(config, vocabulary)
        task_data.warn(
            data, config.questions.train_file or "train", config.questions.predict_file or "dev"
        )
        return (data,)

    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        return plan.train_batches(records.train_batches, _data_of(plan).train_records, start, share)

    def finish_training(self, job: Job) -> None:
        job.record["windows"] = {"train": _data_of(job.plan).train_records.count}

    def is_evaluated(self, actions: ActionsConfig, tasks: Sequence[TaskData]) -> bool:
        """With --do_eval, and as in the original with --do_predict if the answers are known."""
        (data,) = cast(Sequence[SpanData], tasks)
        return data.is_scorable

    def evaluate(self, job: Job) -> dict[str, float]:
        """Returns exact match and F1, from 0 to 100, by the official evaluators."""
        task, answers = _data_of(job.plan), _answers_of(job, job.plan.batches.evaluate)
        return task.task_type.evaluate(
            task.articles,
            answers.texts,
            task.decoding.null_allowed,
            answers.best_texts,
            answers.null_odds,
        )

    def write_details(self, job: Job) -> None:
        task, answers = _data_of(job.plan), job.evaluated["answers"]
        null_allowed = task.decoding.null_allowed
        scores = squad_metrics.scores_by_question(task.articles, answers.texts, null_allowed)
        expected = checks.answer_texts(task.articles)
        details = task.task_type.details(
            task.questions, scores, answers.texts, answers.n_best, expected
        )
        folder = job.plan.output.folder
        write_details_file(folder, "eval_details", task.name, "dev", details)

    def table_name(self, config: RunConfig) -> str:
        return task_data.task_name(config)

    def dev_set(self, plan: Plan) -> QuestionSet:
        return QuestionSet(plan)

    def dev_batches(self, plan: Plan) -> InputBatches:
        windows, batches = _data_of(plan).eval_records, plan.batches
        size = plan.limit_batch(batches.evaluate, windows.count)
        inputs = records.eval_batches(windows, size, batches.max_seq_length, batches.pad_to)
        for number, batch in enumerate(inputs):
            yield batch, min(size, windows.count - number * size)

    def predict(self, job: Job) -> None:
        """Writes predictions, n-best lists and, for SQuAD 2.0, null odds; answers one question."""
        task = _data_of(job.plan)
        self.answer(job.plan, lambda: job.model)
        if not task.articles:
            return
        answers = _answers_of(job, job.plan.batches.predict)
        if job.plan.writes:
            answers.write(job.plan.output.folder)

    def answer(self, plan: Plan, model: Callable[[], EncoderModel]) -> None:
        task = _data_of(plan)
        if task.single is not None:
            _answer_single(model(), task, task.single)

    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        return ["predictions.json", "nbest_predictions.json", "null_odds.json", "eval_details.json"]


def _data_of(plan: Plan) -> SpanData:
    """Returns the task of a plan as this runner reads it."""
    return cast(SpanData, plan.only_task)


def _answers_of(job: Job, batch_size: int) -> Answers:
    """Returns the answers to the questions of `--predict_file`, computed once."""
    if "answers" in job.evaluated:
        return cast(Answers, job.evaluated["answers"])
    task, batches = _data_of(job.plan), job.plan.batches
    windows = task.eval_records
    batch_size = job.plan.limit_batch(batch_size, windows.count)
    job.record["windows"] = job.record.get("windows", {}) | {"dev": windows.count}
    progress = RowProgress("question windows", windows.count)
    logits = inference.predict(
        job.model,
        lambda share: records.eval_batches(
            windows, batch_size, batches.max_seq_length, batches.pad_to, share
        ),
    )
    fields = records.eval_fields(windows, batch_size, batches.pad_to)
    answers = decode_answers(task, zip(logits, fields, strict=True), progress.add)
    job.evaluated["answers"] = answers
    return answers


def _answer_single(model: tf_keras.Model, task: SpanData, question: Question) -> None:
    """Prints the answer to `--question` in `--context`, its score and its position."""
    decoder = Decoder(task.decoding)
    for window in spans.make_windows([question], task.encoder, task.settings):
        ids = window.ids[np.newaxis]
        types = (np.arange(len(window.ids)) >= window.context_begin).astype(np.int32)[np.newaxis]
        logits = model.predict_on_batch(
            {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": types}
        )
        decoder.add(0, logits[0], window.context_begin, window.starts, window.ends, window.is_best)
    text, rows, _ = decoder.answer(0, question)
    best = next(row for row in rows if row["text"] == text)
    total, probability = best["start_logit"] + best["end_logit"], best["probability"]
    score = f"score {total:.2f}, probability {probability:.2f}"
    if not text:
        print(f"No answer\n  {score}", flush=True)
        return
    place = f"characters {best['start']} to {best['end']} of the context"
    print(f"{text}\n  {score}, {place}", flush=True)
