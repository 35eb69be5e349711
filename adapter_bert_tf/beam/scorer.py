"""Answers of a worker process: the base once, all adapters on it, and one bad row costs itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.beam.adapter_set import Adapters, Request, reason_of
from adapter_bert_tf.errors import InputError, OutOfMemory, is_out_of_memory
from adapter_bert_tf.predict.inputs import CutRows
from adapter_bert_tf.predict.tables import AT_ONCE
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.training.device.kernels import choose_kernels

LONGEST_REASON = 500  # Characters.


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What became of a row: its answer's columns, or why there is none.

    `pieces` are the word pieces of its texts, before they are cut.
    """

    cells: dict[str, Any] | None
    pieces: int = 0
    error: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a list of rows, and how many rows were longer than their adapter reads."""

    rows: list[Answer]
    cut: int = 0


class Scorer:
    """Saved adapters, loaded: what `RunInference` calls a model.

    Args:
      adapters: which.
      batch_size: the most rows of a batch, which are of similar length.
      threads: of this process for one operation; 0: as many as there are cores.
    """

    def __init__(self, adapters: Adapters, batch_size: int, threads: int) -> None:
        choose_kernels()
        import tensorflow as tf

        if threads:
            try:
                tf.config.threading.set_intra_op_parallelism_threads(threads)
                tf.config.threading.set_inter_op_parallelism_threads(threads)
            except RuntimeError:
                logging.warning("This process has used TensorFlow before: threads has no effect.")
        from adapter_bert_tf.data.tokenization import TextEncoder
        from adapter_bert_tf.predict.predictor import Predictor

        self._tf, self._configs = tf, adapters.configs
        self._predictor = Predictor(
            adapters.folders,
            base=adapters.base,
            batch_size=batch_size,
            stack=adapters.stack,
        )
        self._encoder = TextEncoder(self._predictor.model.base.vocabulary, 128)

    def __call__(self, asked: Sequence[Request | str]) -> Answers:
        """The answers of rows, in order; a str is a bad row, whose reason stays."""
        answers, cut = list[Answer](), CutRows()
        for first in range(0, len(asked), AT_ONCE):  # The same batches as in `Predictor.stream`.
            part = asked[first : first + AT_ONCE]
            good = [row for row in part if not isinstance(row, str)]
            found = self._answers(good, cut)
            answers += [
                Answer(None, error=row) if isinstance(row, str) else next(found) for row in part
            ]
        return Answers(answers, cut.cut.total())

    def _answers(self, rows: Sequence[Request], cut: CutRows) -> Iterator[Answer]:
        names, texts = [name for name, _ in rows], [row for _, row in rows]
        found = self._try(names, texts, cut)
        errors = [answer for answer in found if isinstance(answer, Exception)]
        unexpected = [error for error in errors if not isinstance(error, InputError)]
        if len(errors) == len(found) > 1 and unexpected:  # Not the rows are bad, but this machine.
            raise unexpected[0]
        for name, answer, pieces in zip(names, found, self._pieces(texts), strict=True):
            if isinstance(answer, Exception):
                yield Answer(None, pieces, truncate(reason_of(answer), LONGEST_REASON))
                continue
            config = self._configs[name]
            kind = type_of(config)
            cells = dict(zip(kind.columns(config), kind.cells(answer), strict=True))
            yield Answer(cells, pieces)

    def _try(
        self, names: list[str], texts: list[Any], cut: CutRows
    ) -> list[dict[str, Any] | Exception]:
        """Answers, or errors: rows that fail together are halved until the bad one is alone."""
        if not texts:
            return []
        own = CutRows()
        try:
            answers: list[Any] = list(self._predictor.stream(texts, names, own))
        except OutOfMemory:
            raise
        except Exception as error:
            if is_out_of_memory(error) or isinstance(error, OSError):
                raise
            if len(texts) == 1:
                return [error]
            half = len(texts) // 2
            halves = (names[:half], texts[:half]), (names[half:], texts[half:])
            return [answer for part in halves for answer in self._try(*part, cut)]
        cut.merge(own)
        return answers

    def _pieces(self, texts: Sequence[Sequence[str]]) -> list[int]:
        """The number of word pieces of each row."""
        flat = [text for row in texts for text in row]
        if not flat:
            return []
        (segments,) = self._encoder.segments(self._tf.constant(flat))
        lengths = iter(segments.row_lengths().numpy().tolist())
        return [sum(next(lengths) for _ in row) for row in texts]
