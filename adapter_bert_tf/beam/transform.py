"""`Score`: a Beam transform that answers rows with saved adapters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

import apache_beam as beam
from apache_beam.ml.inference.base import KeyedModelHandler, ModelHandler, RunInference
from apache_beam.typehints.row_type import RowTypeConstraint

from adapter_bert_tf.beam.adapter_set import Adapters, Request
from adapter_bert_tf.beam.metrics import NAMESPACE, Metrics
from adapter_bert_tf.beam.scorer import Answers, Scorer
from adapter_bert_tf.beam.totals import as_text, type_of_column
from adapter_bert_tf.data.tables.rows import Row
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict.predictor import Folder
from adapter_bert_tf.predict.tables import AT_ONCE
from adapter_bert_tf.predict.writing import unused_names
from adapter_bert_tf.sanitize import preview

BAD = "bad"  # Tag of the rows without an answer.


class AdapterHandler(ModelHandler[Sequence[Any], Answers, Scorer]):
    """Loads adapters once a process, and answers lists of rows.

    An example is a list of rows, each a `Request`, or a reason (str) why it is bad. Its prediction
    is one `Answers`. Beam does not check that there are as many predictions as examples.

    Args:
      adapters: which; only their configurations and places are sent to workers.
      examples: the most lists of one call.
      batch_size: the most rows of a batch of the model.
      threads: as of `Scorer`.
    """

    def __init__(self, adapters: Adapters, examples: int, batch_size: int, threads: int) -> None:
        super().__init__(min_batch_size=examples, max_batch_size=examples)
        self._adapters, self._batch_size, self._threads = adapters, batch_size, threads
        self._cut_rows = beam.metrics.Metrics.counter(NAMESPACE, "cut_rows")

    def load_model(self) -> Scorer:
        return Scorer(self._adapters, self._batch_size, self._threads)

    def run_inference(
        self,
        batch: Sequence[Sequence[Request | str]],
        model: Scorer,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterable[Answers]:
        answered = model([row for rows in batch for row in rows])
        self._cut_rows.inc(answered.cut)
        if len(batch) == 1:
            return [answered]
        answers = iter(answered.rows)
        return [Answers([next(answers) for _ in rows]) for rows in batch]

    def get_metrics_namespace(self) -> str:
        return f"{NAMESPACE}_inference"


class Score(beam.PTransform[Any, Any]):
    """Adds the answers of saved adapters to rows.

        scored = rows | abt.beam.Score("out/mrpc/adapter")
        scored, bad = rows | abt.beam.Score("out/mrpc/adapter").with_bad_rows()

    A row is a dict, or a Beam row or named tuple with a schema; it gets the columns that
    `Predictor.predict_file` adds to a table, with `predicted_` before a name that is taken. The
    columns of the texts are those of the training data, or `text_a`, `text_b`.

    Args:
      adapters: adapter directory, a list of them, or a dict from names to them; workers read them
        from there.
      adapter_column: of several adapters, the column with the name of each row's.
      text_a_column, text_b_column: names of the columns of texts.
      base: as for `Predictor`: the base that the adapters were trained on.
      stack: as for `Predictor`.
      batch_size: the most rows of a batch of the model, which are of similar length.
      threads: of a worker process; 0: as many as there are cores. With a process for each core: 1.

    Raises:
      InputError: when the pipeline is built, for adapters that cannot be read; when it runs, for a
        row without its texts, unless bad rows are asked for.
    """

    def __init__(
        self,
        adapters: Folder | Mapping[str, Folder] | Sequence[Folder],
        adapter_column: str | None = None,
        text_a_column: str | None = None,
        text_b_column: str | None = None,
        base: str | None = None,
        stack: str | Mapping[str, str] | None = None,
        batch_size: int = 32,
        threads: int = 0,
    ) -> None:
        super().__init__()
        self._adapters = Adapters.read(_pairs(adapters), adapter_column, base=base, stack=stack)
        self._columns = text_a_column, text_b_column
        self._batch_size, self._threads = batch_size, threads
        self._bad_rows = False

    def with_bad_rows(self) -> Score:
        """The same transform, which returns two collections: scored rows, and bad ones.

        A bad row is a dict of `row`, as it was, and `reason`.
        """
        other = Score.__new__(Score)
        other.__dict__.update(self.__dict__, _bad_rows=True)
        return other

    def expand(self, rows: Any) -> Any:
        """Rows to scored rows; with `with_bad_rows`, to a pair of collections."""
        handler = AdapterHandler(self._adapters, AT_ONCE, self._batch_size, self._threads)
        scored = (
            rows
            | "Ask" >> beam.ParDo(_Ask(self._adapters, self._columns))
            | "Answer" >> RunInference(KeyedModelHandler(handler))
            | "Add" >> beam.ParDo(_Add(self._adapters, self._bad_rows)).with_outputs(BAD, main="ok")
        )
        ok = scored.ok
        if fields := _fields(rows.element_type, self._adapters):
            ok |= "Rows" >> beam.Map(lambda row: row).with_output_types(
                RowTypeConstraint.from_fields(fields)
            )
        return (ok, scored[BAD]) if self._bad_rows else ok


def _pairs(adapters: Any) -> list[tuple[str, Any]]:
    if isinstance(adapters, Mapping):
        return list(adapters.items())
    one = isinstance(adapters, str | os.PathLike)
    return [("", folder) for folder in ([adapters] if one else adapters)]


def values_of(row: Any) -> dict[str, Any]:
    """The values of a row by column. Raises `InputError` for an element that is no row."""
    if isinstance(row, Mapping):
        return dict(row)
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    raise InputError(
        f"A row is a dict, or a Beam row or named tuple with a schema. Received: {preview(row)}"
    )


def _fields(element_type: Any, adapters: Adapters) -> list[tuple[str, Any]]:
    """The schema of scored rows; empty where the rows have none."""
    row_type = RowTypeConstraint.from_user_type(element_type)
    if row_type is None and isinstance(element_type, RowTypeConstraint):
        row_type = element_type
    if row_type is None:
        return []
    fields = list(row_type._fields)
    names = field_names(adapters, [name for name, _ in fields])
    # `str | None` would be a pickle to Beam, which SQL and connectors cannot read.
    types = [(new, Optional[type_of_column(name)]) for name, new in names.items()]  # noqa: UP045
    return fields + types


def field_names(adapters: Adapters, taken: Sequence[str]) -> dict[str, str]:
    """As `Adapters.answer_names`, for rows with a schema.

    Their names are identifiers: `_` replaces all else, such as the space in `probability_not good`.
    """
    names = dict[str, str]()
    for name, new in adapters.answer_names(taken).items():
        field = "".join(c if f"_{c}".isidentifier() else "_" for c in new)
        (names[name],) = unused_names([field], [*taken, *names.values()])
    return names


def _as_field(cell: Any) -> Any:
    """A cell of an answer as a value of its type in the schema, which has lists as JSON."""
    return as_text(cell) if isinstance(cell, list | dict | str) else cell


class _Ask(beam.DoFn):
    """Pairs each row with what its adapter reads of it."""

    def __init__(self, adapters, columns):
        self._adapters, self._columns = adapters, columns
        self._keys = {}  # Of the last row; rows of one collection may differ in their columns.

    def process(self, row):
        values = values_of(row)
        try:
            asked = self._adapters.ask(Row(0, values), self._keys_of(tuple(values)))
        except InputError as error:  # A row without the column.
            asked = str(error)
        yield row, [asked]

    def _keys_of(self, names):
        if names not in self._keys:
            self._keys = {names: self._adapters.keys(names, *self._columns)}
        return self._keys[names]


class _Add(beam.DoFn):
    """Adds the answers to the rows, and counts."""

    def __init__(self, adapters, bad_rows):
        self._adapters, self._bad_rows = adapters, bad_rows
        self._names = {}  # Of the last row.
        self._metrics = Metrics()

    def process(self, pair):
        row, answers = pair
        (answered,) = answers.rows
        self._metrics.add(answered)
        if answered.error is not None and self._bad_rows:
            yield beam.pvalue.TaggedOutput(BAD, {"row": row, "reason": answered.error})
            return
        if answered.error is not None:
            raise InputError(
                f"A row cannot be scored: {answered.error} Received: {preview(row)}. "
                "`Score(...).with_bad_rows()` returns such rows, too."
            )
        values = values_of(row)
        is_dict, taken = isinstance(row, Mapping), tuple(values)
        if (is_dict, taken) not in self._names:
            names_of = Adapters.answer_names if is_dict else field_names
            self._names = {(is_dict, taken): names_of(self._adapters, taken)}
        names = self._names[is_dict, taken]
        cells = {new: answered.cells.get(name) for name, new in names.items()}
        if is_dict:
            yield values | cells
            return
        yield beam.Row(**values, **{name: _as_field(cell) for name, cell in cells.items()})
