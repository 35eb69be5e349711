"""Answers to all questions of a file, decoded from logits, and their files."""

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.runners.questions.task_data import SpanData
from adapter_bert_tf.tasks.span_decoding import Decoder


@dataclasses.dataclass(frozen=True)
class Answers:
    """Answers to all questions of a file, dicts from question id.

    Args:
      texts: the answers; "" for none.
      best_texts: the best answers, even if no answer has a higher score.
      n_best: lists of dicts, see `Decoder.answer`.
      null_odds: score of no answer minus the best answer's; empty if that is not allowed.
    """

    texts: dict[str, str]
    best_texts: dict[str, str]
    n_best: dict[str, list[dict[str, Any]]]
    null_odds: dict[str, float]

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


def decode_answers(
    task: SpanData,
    batches: Iterable[tuple[np.ndarray, Mapping[str, tf.RaggedTensor]]],
    done: Callable[[int], object] = lambda windows: None,
) -> Answers:
    """Decodes answers from logits.

    Args:
      task: whose questions.
      batches: pairs of logits, float32 `[batch, 2, seq]`, and the ragged fields of their windows.
      done: called with the number of windows of each batch.
    """
    decoder = Decoder(task.decoding)
    for logits, fields in batches:
        done(_add_windows(decoder, logits, fields))
    texts, best_texts, n_best, null_odds = {}, {}, {}, {}
    for number, question in enumerate(task.questions):
        text, rows, odds = decoder.answer(number, question)
        texts[question.id], n_best[question.id] = text, rows
        best_texts[question.id] = decoder.best_answer(number, question)
        if odds is not None:
            null_odds[question.id] = odds
    return Answers(texts, best_texts, n_best, null_odds)


def _add_windows(
    decoder: Decoder, logits: np.ndarray, fields: Mapping[str, tf.RaggedTensor]
) -> int:
    """Adds the windows of a batch to a decoder, without padding rows; returns their number."""
    rows = {
        name: np.split(ragged.flat_values.numpy(), ragged.row_splits.numpy()[1:-1])
        for name, ragged in fields.items()
    }
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
