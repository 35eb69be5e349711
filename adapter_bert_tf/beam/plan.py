"""What a scoring job does, as plain values that go to workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.beam.asking import Adapters
from adapter_bert_tf.beam.shards import Shards
from adapter_bert_tf.errors import InputError

SUMMARY = "summary.json"


@dataclasses.dataclass(frozen=True)
class Job:
    """All that workers need to know.

    Args:
      adapters: which answer.
      output: where the shards go.
      run: the name of this run, in the records of parts: parts that it has written are whole.
      part_rows: rows of a part.
      text_columns: the user's choice for the columns of the texts; None: as the adapters say.
      reading: the user's `delimiter`, `header`, `quoted` and `encoding`.
      batch_size: the most rows of a batch of the model.
      threads: of a worker process; 0: as many as there are cores.
      max_bad_rows: the most bad rows; None: any number.
      resume: whether the parts of earlier runs are kept.
    """

    adapters: Adapters
    output: Shards
    run: str
    part_rows: int
    text_columns: tuple[str | None, str | None]
    reading: Mapping[str, Any]
    batch_size: int
    threads: int
    max_bad_rows: int | None
    resume: bool

    def require_few(self, bad_rows: int) -> None:
        """Raises `InputError` if there are too many bad rows."""
        if self.max_bad_rows is not None and bad_rows > self.max_bad_rows:
            raise InputError(
                f"{bad_rows:,} rows are bad, more than max_bad_rows={self.max_bad_rows}. What was "
                "written of them is in the folder _bad_rows of the output. Correct them, or allow "
                "more; resume goes on.",
                "max_bad_rows",
                "resume",
            )
