"""Question answering in the graph: windows, the best span, and its text.

The same windows and the same choice as in `data.spans` and `tasks.span_decoding`, as tensors.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.data.tokenization import TextEncoder, require_equal_lengths
from adapter_bert_tf.heads.serving_texts import Run, Tensors

NEVER = -3.0e38  # Below every score; infinities would make NaN of differences.
WINDOWS_AT_ONCE = 16  # Of a pass of the encoder, so that memory does not grow with the text.


class Answerer(tf.Module):
    """Answers to questions, from raw text.

    `run` maps encoder inputs to logits `[windows, 2, seq]`; `settings` are those of `SpanSettings`
    and `DecodingSettings`.
    """

    def __init__(self, run: Run, settings: Mapping[str, Any], encoder: TextEncoder) -> None:
        super().__init__()
        self.run = run
        self.settings = settings
        self.encoder = encoder

    def __call__(self, question: tf.Tensor, context: tf.Tensor) -> Tensors:
        """Answers questions in contexts, string `[batch]`.

        Returns a dict of `[batch]`: `answer`, a slice of the context, "" for none; `score`, the sum
        of its two logits; `start` and `end` in characters of the context, -1 for none.
        """
        question, context = require_equal_lengths([question, context])
        query, _, _ = self.encoder.align(question)
        query = query[:, : self.settings["max_query_length"]]
        pieces, starts, ends = self.encoder.align(context)
        windows = span_windows(query.row_lengths(), pieces.row_lengths(), self.settings)
        logits = self._run_in_parts(self._inputs(query, pieces, windows))
        best = self._best(logits, windows, pieces.row_lengths())
        return self._answers(best, windows, context, starts, ends)

    def _run_in_parts(self, inputs: Tensors) -> tf.Tensor:
        count, seq = tf.unstack(tf.shape(inputs["input_mask"]))
        parts = (tf.maximum(count, 1) + WINDOWS_AT_ONCE - 1) // WINDOWS_AT_ONCE

        def run(part: tf.Tensor, done: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            rows = slice(part * WINDOWS_AT_ONCE, (part + 1) * WINDOWS_AT_ONCE)
            logits = self.run({name: value[rows] for name, value in inputs.items()})
            return part + 1, tf.concat([done, logits], 0)

        _, logits = tf.while_loop(
            lambda part, done: part < parts,
            run,
            (0, tf.zeros([0, 2, seq])),
            (tf.TensorShape([]), tf.TensorShape([None, 2, None])),
            parallel_iterations=1,
        )
        return logits

    def _inputs(self, query: tf.RaggedTensor, pieces: tf.RaggedTensor, windows: Tensors) -> Tensors:
        count = [tf.shape(windows["question"])[0], 1]
        cls, sep = (
            tf.RaggedTensor.from_tensor(tf.fill(count, piece))
            for piece in (self.encoder.start_id, self.encoder.end_id)
        )
        offsets = tf.gather(pieces.row_starts(), windows["question"])
        inside = tf.ragged.range(offsets + windows["begin"], offsets + windows["end"])
        part = tf.gather(tf.cast(pieces.flat_values, tf.int32), inside)
        question = tf.gather(tf.cast(query, tf.int32), windows["question"])
        ids = tf.concat([cls, question, sep, part, sep], 1)
        lengths = ids.row_lengths()
        width = tf.maximum(ids.bounding_shape(1), 1)
        places = tf.range(width)
        mask = tf.sequence_mask(lengths, width)
        types = tf.cast((places >= windows["head"][:, tf.newaxis]) & mask, tf.int32)
        return {
            "input_word_ids": ids.to_tensor(shape=tf.stack([-1, width])),
            "input_mask": tf.cast(mask, tf.int32),
            "input_type_ids": types,
        }

    def _best(self, logits: tf.Tensor, windows: Tensors, lengths: tf.Tensor) -> Tensors:
        """The best span of each window: (first, last) piece of the context, score, [CLS] score."""
        places = tf.range(tf.shape(logits, tf.int64)[2])[tf.newaxis]
        begin, end = windows["begin"][:, tf.newaxis], windows["end"][:, tf.newaxis]
        piece = places - windows["head"][:, tf.newaxis] + begin
        inside = (piece >= begin) & (piece < end)
        allowed = inside & has_most_context(piece, windows, lengths)
        count = tf.minimum(self.settings["n_best_size"], tf.shape(logits)[2])
        start_logits, first = tf.math.top_k(tf.where(allowed, logits[:, 0], NEVER), count)
        end_logits, last = tf.math.top_k(tf.where(inside, logits[:, 1], NEVER), count)
        ahead = last[:, tf.newaxis] - first[:, :, tf.newaxis]
        fits = (
            (start_logits[:, :, tf.newaxis] > NEVER)
            & (end_logits[:, tf.newaxis] > NEVER)
            & (ahead >= 0)
            & (ahead < self.settings["max_answer_length"])
        )
        scores = tf.where(fits, start_logits[:, :, tf.newaxis] + end_logits[:, tf.newaxis], NEVER)
        scores = tf.reshape(scores, [-1, count * count])
        which = tf.argmax(scores, -1, tf.int32)
        first = tf.gather(first, which // count, batch_dims=1)
        last = tf.gather(last, which % count, batch_dims=1)
        shift = windows["begin"] - windows["head"]
        return {
            "score": tf.reduce_max(scores, -1),
            "null": logits[:, 0, 0] + logits[:, 1, 0],
            "first": tf.cast(first, tf.int64) + shift,
            "last": tf.cast(last, tf.int64) + shift,
        }

    def _answers(
        self,
        best: Tensors,
        windows: Tensors,
        context: tf.Tensor,
        starts: tf.RaggedTensor,
        ends: tf.RaggedTensor,
    ) -> Tensors:
        batch = tf.shape(context, tf.int64)[0]
        score = tf.math.unsorted_segment_max(best["score"], windows["question"], batch)
        null = -tf.math.unsorted_segment_max(-best["null"], windows["question"], batch)
        is_best = best["score"] == tf.gather(score, windows["question"])
        numbers = tf.range(tf.size(is_best, tf.int64))
        chosen = tf.math.unsorted_segment_min(
            tf.where(is_best, numbers, tf.int64.max), windows["question"], batch
        )
        is_answered = score > NEVER
        if self.settings["null_allowed"]:
            is_answered &= null - score <= self.settings["null_score_diff_threshold"]
        first, last = (
            tf.where(is_answered, tf.gather(best[name], chosen), 0) for name in ("first", "last")
        )
        start, end = _pick(starts, first, is_answered), _pick(ends, last, is_answered)
        length = tf.where(is_answered, end - start, 0)
        answer = tf.strings.substr(context, tf.maximum(start, 0), length, unit="UTF8_CHAR")
        if self.settings["null_allowed"]:
            score = tf.where(is_answered, score, null)
        return {
            "answer": answer,
            "score": tf.where(score > NEVER, score, 0.0),
            "start": start,
            "end": end,
        }


def _pick(ragged: tf.RaggedTensor, columns: tf.Tensor, is_answered: tf.Tensor) -> tf.Tensor:
    """`ragged[i, columns[i]]` of each row, -1 without an answer."""
    flat = tf.concat([ragged.flat_values, [-1]], 0)
    last = tf.size(flat, tf.int64) - 1
    return tf.gather(flat, tf.where(is_answered, ragged.row_starts() + columns, last))


def span_windows(
    query_lengths: tf.Tensor, context_lengths: tf.Tensor, settings: Mapping[str, Any]
) -> Tensors:
    """The windows of each question, from int64 `[batch]` lengths; see `data.spans.window_spans`.

    Returns:
      dict of int64 `[windows]`: number of the `question`, `begin` and `end` in its context, and
      `head`, the position of the first context piece.
    """
    head = query_lengths + 2
    room = settings["max_seq_length"] - head - 1
    step = tf.minimum(tf.cast(settings["doc_stride"], tf.int64), room)
    beyond = tf.maximum(context_lengths - room, 0)
    counts = 1 + (beyond + step - 1) // step
    question = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)
    begin = tf.ragged.range(counts).flat_values * tf.gather(step, question)
    end = tf.minimum(begin + tf.gather(room, question), tf.gather(context_lengths, question))
    return {"question": question, "begin": begin, "end": end, "head": tf.gather(head, question)}


def has_most_context(piece: tf.Tensor, windows: Tensors, lengths: tf.Tensor) -> tf.Tensor:
    """bool `[windows, seq]`: no other window shows the piece with more context.

    See `data.spans.best_windows`. `piece` is int64 `[windows, seq]`, the piece of the context at
    each position; `lengths` are int64 `[batch]`, of the contexts.
    """
    begin, end = windows["begin"][:, tf.newaxis], windows["end"][:, tf.newaxis]
    inside = (piece >= begin) & (piece < end)
    # The context on the poorer side, plus 0.01 of the window's length.
    poorer = tf.cast(tf.minimum(piece - begin, end - 1 - piece), tf.float64)
    scores = tf.where(inside, poorer + 0.01 * tf.cast(end - begin, tf.float64), -1.0)
    # Every piece of the batch has a number; 0 is for what is outside.
    first = tf.gather(tf.cumsum(lengths, exclusive=True), windows["question"])[:, tf.newaxis]
    number = tf.where(inside, first + piece + 1, 0)
    count = tf.reduce_sum(lengths) + 1
    best = tf.math.unsorted_segment_max(scores, number, count)
    window = tf.broadcast_to(tf.range(tf.shape(piece)[0])[:, tf.newaxis], tf.shape(piece))
    rivals = tf.where(scores == tf.gather(best, number), window, tf.int32.max)
    winner = tf.math.unsorted_segment_min(rivals, number, count)
    return inside & (tf.gather(winner, number) == window)
