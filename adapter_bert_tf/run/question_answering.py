"""The job of `run_squad.py`: answers as spans of a context."""

import dataclasses
import json
import os

import numpy as np
import tf_keras

from adapter_bert_tf import storage
from adapter_bert_tf.data import records, spans
from adapter_bert_tf.data.squad import Question
from adapter_bert_tf.heads.span_labeler import SpanLabeler
from adapter_bert_tf.run import outputs, questions, settings, sweep
from adapter_bert_tf.run.job import Kind
from adapter_bert_tf.tasks import squad_metrics
from adapter_bert_tf.tasks.span_decoding import Decoder
from adapter_bert_tf.training import inference


def run(flags):
    """Runs the command. Raises `InputError` for what the user can mend, before training.

    Args:
      flags: `absl.flags.FLAGS`, parsed.
    """
    sweep.run(QuestionAnswering(), flags)


class QuestionAnswering(Kind):
    """Extractive question answering, SQuAD 1.1 and 2.0."""

    def main_metric(self, flags):
        return "f1"

    def check(self, flags, saved):
        questions.check(flags)
        if saved:
            questions.check_saved(flags, saved)

    def read(self, flags, shared, saved):
        return shared.data(flags, lambda vocabulary: questions.read(flags, vocabulary))

    def new_model(self, encoder, config, data):
        return SpanLabeler(encoder)

    def train_batches(self, job, start, share):
        flags, data = job.flags, job.data
        return records.train_batches(
            data.train_records,
            flags.train_batch_size,
            job.steps,
            flags.seed,
            flags.max_seq_length,
            settings.pad_to(flags),
            start,
            share,
        )

    def finish_training(self, job):
        job.record["windows"] = {"train": job.data.train_records.count}

    def is_evaluated(self, flags, data):
        """With --do_eval, and as in the original with --do_predict where the answers are known."""
        return bool(data.articles) and not squad_metrics.count_unlabelled(data.articles)

    def evaluate(self, job):
        answers = self._answers(job, job.flags.eval_batch_size)
        return answers.score(job.data.articles, job.flags.version_2_with_negative)

    def predict(self, job):
        """Writes predictions, n-best lists and, for SQuAD 2.0, null odds; answers one question."""
        if job.flags.question is not None:
            answer_one(job)
        if not job.data.articles:
            return
        answers = self._answers(job, job.flags.predict_batch_size)
        if job.writes:
            answers.write(job.flags.output_dir)

    def output_files(self, data):
        return ["predictions.json", "nbest_predictions.json", "null_odds.json"]

    def _answers(self, job, batch_size):
        """The `Answers` of a job, found once."""
        if "answers" not in job.found:
            job.found["answers"] = answer_all(job, batch_size)
        return job.found["answers"]


@dataclasses.dataclass(frozen=True)
class Answers:
    """Answers to all questions of a file, dicts from question id.

    Args:
      texts: the answers, "" for none.
      best_texts: the best answers, even where none scores higher.
      n_best: lists of dicts, see `Decoder.answer`.
      null_odds: score of no answer minus the best answer's; empty if that is not allowed.
    """

    texts: dict
    best_texts: dict
    n_best: dict
    null_odds: dict

    def score(self, articles, version_2):
        """Exact match and F1, from 0 to 100, by the official evaluators."""
        if version_2:
            return squad_metrics.evaluate_v2(articles, self.texts, self.best_texts, self.null_odds)
        return squad_metrics.evaluate_v1(articles, self.texts)

    def write(self, folder):
        """Writes the files of google-research/bert's `run_squad.py`."""
        files = {"predictions.json": self.texts, "nbest_predictions.json": self.n_best}
        if self.null_odds:
            files["null_odds.json"] = self.null_odds
        outputs.remove(folder, ["null_odds.json"])  # An earlier run's.
        for name, content in files.items():
            # Escaped, because JSON may hold half a surrogate pair, which no UTF-8 file can.
            storage.write_text(os.path.join(folder, name), json.dumps(content, indent=2) + "\n")
        print(f"Predictions: {', '.join(os.path.join(folder, name) for name in files)}", flush=True)


def answer_all(job, batch_size):
    """`Answers` to the questions of `--predict_file`."""
    flags, asked = job.flags, job.data.asked
    windows = job.data.eval_records
    job.record["windows"] = job.record.get("windows", {}) | {"dev": windows.count}
    decoder = Decoder(job.data.decoding)
    progress = tf_keras.utils.Progbar(windows.count, unit_name="window", interval=5)
    size, length, pad_to = job.batch_size(batch_size), flags.max_seq_length, settings.pad_to(flags)
    batches = inference.predict(
        job.model, lambda share: records.eval_batches(windows, size, length, pad_to, share)
    )
    for logits, fields in zip(batches, records.eval_fields(windows, size, pad_to), strict=True):
        progress.add(add_windows(decoder, logits, fields))
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


def answer_one(job):
    """Prints the answer to `--question` in `--context`, its score and its position."""
    flags = job.flags
    question = Question("", flags.question, flags.context)
    decoder = Decoder(job.data.decoding)
    for window in spans.make_windows([question], job.data.encoder, job.data.settings):
        ids = window.ids[np.newaxis]
        types = (np.arange(len(window.ids)) >= window.context_begin).astype(np.int32)[np.newaxis]
        logits = job.model.predict_on_batch(
            {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": types}
        )
        decoder.add(0, logits[0], window.context_begin, window.starts, window.ends, window.is_best)
    text, rows, _ = decoder.answer(0, question)
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
