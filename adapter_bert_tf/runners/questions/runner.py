"""The job of `run_squad.py`: answers as spans of a context."""

import dataclasses
import json
import os
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.config.checks import check_questions, check_room
from adapter_bert_tf.data.questions import records, spans
from adapter_bert_tf.run.result_files import write_details_file
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.runners.questions import checks, task_data
from adapter_bert_tf.task_types.spans import Spans
from adapter_bert_tf.tasks import squad_metrics
from adapter_bert_tf.tasks.span_decoding import Decoder
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.progress import RowProgress


class QuestionRunner(TaskRunner):
    """Extractive question answering, SQuAD 1.1 and 2.0."""

    uses_pooler = False

    def check(self, config, saved):
        check_questions(config)
        if saved:
            task_data.check_saved(config, saved)
        check_room(config)  # After that: the lengths may be those of the saved adapter.

    def read(self, config, vocabulary, saved):
        data = task_data.read(config, vocabulary)
        task_data.warn(
            data, config.questions.train_file or "train", config.questions.predict_file or "dev"
        )
        return (data,)

    def train_batches(self, plan, start, share):
        batches = plan.batches
        return records.train_batches(
            plan.only_task.train_records,
            batches.train,
            plan.training.steps,
            batches.seed,
            batches.max_seq_length,
            batches.pad_to,
            batches.group_by_length,
            start,
            share,
        )

    def finish_training(self, job):
        job.record["windows"] = {"train": job.plan.only_task.train_records.count}

    def is_evaluated(self, plan):
        """With --do_eval, and as in the original with --do_predict where the answers are known."""
        return plan.only_task.is_scorable

    def evaluate(self, job):
        task = job.plan.only_task
        answers = self._answers(job, job.plan.batches.evaluate)
        return answers.score(task.task_type, task.articles, task.decoding.null_allowed)

    def write_details(self, job):
        task, answers = job.plan.only_task, job.evaluated["answers"]
        scores = squad_metrics.scores_by_question(
            task.articles, answers.texts, task.decoding.null_allowed
        )
        expected = checks.answer_texts(task.articles)
        found = task.task_type.details(task.asked, scores, answers.texts, answers.n_best, expected)
        folder = job.plan.paths.output_dir
        write_details_file(folder, "eval_details", task.name, "dev", found)

    def dev_batches(self, plan):
        windows, batches = plan.only_task.eval_records, plan.batches
        size = plan.limit_batch(batches.evaluate, windows.count)
        inputs = records.eval_batches(windows, size, batches.max_seq_length, batches.pad_to)
        for number, batch in enumerate(inputs):
            yield batch, min(size, windows.count - number * size)

    def predict(self, job):
        """Writes predictions, n-best lists and, for SQuAD 2.0, null odds; answers one question."""
        task = job.plan.only_task
        if task.one is not None:
            answer_one(job.model, task)
        if not task.articles:
            return
        answers = self._answers(job, job.plan.batches.predict)
        if job.plan.writes:
            answers.write(job.plan.paths.output_dir)

    def output_files(self, tasks):
        return ["predictions.json", "nbest_predictions.json", "null_odds.json", "eval_details.json"]

    def _answers(self, job, batch_size):
        """The `Answers` of a job, found once."""
        if "answers" not in job.evaluated:
            job.evaluated["answers"] = answer_all(job, batch_size)
        return job.evaluated["answers"]


@dataclasses.dataclass(frozen=True)
class Answers:
    """Answers to all questions of a file, dicts from question id.

    Args:
      texts: the answers, "" for none.
      best_texts: the best answers, even where none scores higher.
      n_best: lists of dicts, see `Decoder.answer`.
      null_odds: score of no answer minus the best answer's; empty if that is not allowed.
    """

    texts: dict[str, str]
    best_texts: dict[str, str]
    n_best: dict[str, list[dict[str, Any]]]
    null_odds: dict[str, float]

    def score(self, kind: Spans, articles: list[Any], version_2: bool) -> dict[str, float]:
        """Exact match and F1, from 0 to 100, by the official evaluators."""
        return kind.evaluate(articles, self.texts, version_2, self.best_texts, self.null_odds)

    def write(self, folder: str) -> None:
        """Writes the files of google-research/bert's `run_squad.py`."""
        files = {"predictions.json": self.texts, "nbest_predictions.json": self.n_best}
        null_odds = os.path.join(folder, "null_odds.json")
        if self.null_odds:
            files["null_odds.json"] = self.null_odds
        elif storage.exists(null_odds):  # An earlier run's.
            storage.remove(null_odds)
        for name, content in files.items():
            # Escaped, because JSON may hold half a surrogate pair, which no UTF-8 file can.
            storage.write_text(os.path.join(folder, name), json.dumps(content, indent=2) + "\n")
        print(f"Predictions: {', '.join(os.path.join(folder, name) for name in files)}", flush=True)


def answer_all(job, batch_size):
    """`Answers` to the questions of `--predict_file`."""
    task, batches = job.plan.only_task, job.plan.batches
    windows = task.eval_records
    batch_size = job.plan.limit_batch(batch_size, windows.count)
    job.record["windows"] = job.record.get("windows", {}) | {"dev": windows.count}
    progress = RowProgress("question windows", windows.count)
    found_logits = inference.predict(
        job.model,
        lambda share: records.eval_batches(
            windows, batch_size, batches.max_seq_length, batches.pad_to, share
        ),
    )
    all_fields = records.eval_fields(windows, batch_size, batches.pad_to)
    return decode_answers(task, zip(found_logits, all_fields, strict=True), progress.add)


def decode_answers(task, batches, done=lambda windows: None):
    """`Answers` from logits.

    Args:
      task: `SpanData`.
      batches: pairs of logits, float32 `[batch, 2, seq]`, and the ragged fields of their windows.
      done: is told the number of windows of each batch.
    """
    decoder, asked = Decoder(task.decoding), task.asked
    for logits, fields in batches:
        done(add_windows(decoder, logits, fields))
    found = [decoder.answer(i, question) for i, question in enumerate(asked)]
    ids = [question.id for question in asked]
    return Answers(
        texts={i: text for i, (text, _, _) in zip(ids, found, strict=True)},
        best_texts={
            i: decoder.best_answer(n, question)
            for n, (i, question) in enumerate(zip(ids, asked, strict=True))
        },
        n_best={i: rows for i, (_, rows, _) in zip(ids, found, strict=True)},
        null_odds={i: odds for i, (_, _, odds) in zip(ids, found, strict=True) if odds is not None},
    )


def add_windows(decoder, logits, fields):
    """Adds the windows of a batch to a decoder.

    Args:
      decoder: `Decoder`.
      logits: float32 `[batch, 2, seq]`; rows after the last window only fill up the batch.
      fields: dict of the ragged fields of `Window`.

    Returns:
      the number of windows.
    """
    rows = {name: _rows(values) for name, values in fields.items()}
    count = len(rows["question"])
    for i, scores in enumerate(logits[:count]):
        decoder.add(
            int(rows["question"][i][0]),
            scores,
            int(rows["context_begin"][i][0]),
            rows["starts"][i],
            rows["ends"][i],
            rows["is_best"][i].astype(bool),
        )
    return count


def _rows(ragged):
    return np.split(ragged.flat_values.numpy(), ragged.row_splits.numpy()[1:-1])


def answer_one(model, task):
    """Prints the answer to `--question` in `--context`, its score and its position."""
    decoder = Decoder(task.decoding)
    for window in spans.make_windows([task.one], task.encoder, task.settings):
        ids = window.ids[np.newaxis]
        types = (np.arange(len(window.ids)) >= window.context_begin).astype(np.int32)[np.newaxis]
        logits = model.predict_on_batch(
            {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": types}
        )
        decoder.add(0, logits[0], window.context_begin, window.starts, window.ends, window.is_best)
    text, rows, _ = decoder.answer(0, task.one)
    best = next(row for row in rows if row["text"] == text)
    score = (
        f"score {best['start_logit'] + best['end_logit']:.2f}, probability "
        f"{best['probability']:.2f}"
    )
    if not text:
        print(f"No answer\n  {score}", flush=True)
        return
    print(
        f"{text}\n  {score}, characters {best['start']} to {best['end']} of the context", flush=True
    )
