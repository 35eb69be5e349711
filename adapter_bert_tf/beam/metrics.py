"""Counters and distributions of scored rows, in the metrics of a Beam job."""

from __future__ import annotations

from typing import Any

from apache_beam.metrics import Metrics as BeamMetrics

from adapter_bert_tf.beam.scorer import Answer
from adapter_bert_tf.beam.totals import labels_of, score_of

NAMESPACE = "adapter_bert"


class Metrics:
    """Counters and distributions of the rows in the job's metrics."""

    MOST_LABELS = 100  # Beyond that, labels have no counters of their own.

    def __init__(self) -> None:
        counter, distribution = BeamMetrics.counter, BeamMetrics.distribution
        self._rows, self._bad = counter(NAMESPACE, "rows"), counter(NAMESPACE, "bad_rows")
        self._pieces = distribution(NAMESPACE, "word_pieces")
        # Beam's distributions take integers.
        self._scores = distribution(NAMESPACE, "score_thousandths")
        self._labels: dict[str, Any] = {}

    def add(self, answered: Answer) -> None:
        """Counts a row."""
        self._rows.inc()
        if answered.cells is None:
            self._bad.inc()
            return
        self._pieces.update(answered.pieces)
        score = score_of(answered)
        if score is not None:
            self._scores.update(round(1000 * score))
        for label in labels_of(answered):
            if label not in self._labels and len(self._labels) < self.MOST_LABELS:
                self._labels[label] = BeamMetrics.counter(NAMESPACE, f"label_{label}")
            if label in self._labels:
                self._labels[label].inc()
