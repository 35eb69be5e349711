"""What a scoring job does, as plain values that go to workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from adapter_bert_tf.beam.adapter_set import Adapters, Keys
from adapter_bert_tf.beam.shards import Shards
from adapter_bert_tf.beam.text_rows import TEXT, TEXT_NAME
from adapter_bert_tf.data.tables.stream import TableFormat
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

    def keys(self, form: TableFormat, names: Sequence[str] | None) -> Keys:
        """The columns of the adapters' texts in a file. Raises `InputError` for missing ones."""
        if form.extension == TEXT:
            return self.adapters.keys(names, TEXT_NAME)
        return self.adapters.keys(names, *self.text_columns)

    def require_few(self, bad: BadRows) -> None:
        """Raises `InputError` if there are too many bad rows."""
        if self.max_bad_rows is not None and bad.count > self.max_bad_rows:
            first = "".join(f" {sentence}" for sentence in bad.examples)
            raise InputError(
                f"{bad.count:,} rows are bad, more than max_bad_rows={self.max_bad_rows}.{first} "
                "Correct them, or allow more; resume goes on.",
                "max_bad_rows",
                "resume",
            )


@dataclasses.dataclass(frozen=True)
class BadRows:
    """A number of bad rows, and sentences about the first of them."""

    MOST: ClassVar[int] = 3

    count: int = 0
    examples: tuple[str, ...] = ()

    @classmethod
    def sum(cls, parts: Iterable[BadRows]) -> BadRows:
        """All bad rows together."""
        parts = list(parts)
        examples = sorted(sentence for part in parts for sentence in part.examples)
        return cls(sum(part.count for part in parts), tuple(examples[: cls.MOST]))
