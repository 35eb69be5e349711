"""`Predictor`: saved adapters, applied to texts."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.base import Base, load_base
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError, memory_context
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.predict import columns, frames, tables
from adapter_bert_tf.predict.files import answer_file
from adapter_bert_tf.predict.inputs import CutRows, Row, encodable, listed, rows_of
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.base_match import base_of
from adapter_bert_tf.store.combining.stacking import stack_folders
from adapter_bert_tf.store.contents import name_of
from adapter_bert_tf.store.files import read_adapter_config
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.task_types.batched_inference import Inputs

Folder: TypeAlias = str | os.PathLike[str]


class Predictor:
    """Answers texts with saved adapters; these contain all it needs: length, labels, columns.

        predictor = Predictor("out/mrpc/adapter")
        predictor("He left.", "He went away.")  # {"label": "1", "probabilities": {...}}
        predictor(["He left.", "It rained."], ["He went away.", "It snowed."])  # a list of these
        predictor(frame)  # a pandas DataFrame with the answers as more columns
        predictor.predict_file("pairs.csv", "answers.csv")  # of any size

    An answer is a dict: `label` and `probabilities` (dict from label to probability) of classes,
    `labels`, a list, and `probabilities` with any number of labels, `score` of a regression,
    `answer`, `score`, `probability`, `start` and `end` (characters of the context) of a question,
    `entities`, `words` and `tags` of a tagger: an entity has `text`, `type`, `start`, `end` and
    `probability`. A tagger also takes lists of words, whose numbers are then the offsets.

    Args:
      *adapters: adapter directories or folders of runs, or dicts from names to these. With several,
        each call names the one it means.
      base: the base that they were trained on: a `Base`, or what `load_base` takes. None: the base
        that the first adapter names, if it can be found by its name, or the installed one.
      batch_size: the most rows of a batch.
      stack: folder of the adapter below those that were trained on top of one, or a dict from their
        names to such folders: rows of one call may then be in different languages.

    Raises:
      InputError: when there is no adapter, one is damaged, or its base is another one.
    """

    def __init__(
        self,
        *adapters: Folder | Mapping[str, Folder],
        base: Base | str | None = None,
        batch_size: int = 32,
        stack: Folder | Mapping[str, Folder] | None = None,
    ) -> None:
        is_size = isinstance(batch_size, int | np.integer) and not isinstance(batch_size, bool)
        if not adapters or not is_size or batch_size < 1:
            raise InputError(
                "A Predictor takes adapter directories, and a batch_size of 1 or more. Received: "
                f"{preview(adapters)}, {preview(batch_size)}"
            )
        named = [pair for adapter in adapters for pair in _named(adapter)]
        base = base_of(named[0][1]) if base is None else base
        self.model = AdapterModel(base if isinstance(base, Base) else load_base(base))
        self.batch_size = batch_size
        configs = [read_adapter_config(storage.path_of(folder)) for _, folder in named]
        names = [name or name_of(c) for (name, _), c in zip(named, configs, strict=True)]
        below = stack_folders(dict(zip(names, configs, strict=True)), stack)
        for name, (own, folder) in zip(names, named, strict=True):
            self.model.load_adapter(folder, own, stack=below[name])
        self._configs = {name: self.model.config(name) for name in self.adapters}
        self._encoder = TextEncoder(self.model.base.vocabulary, 128)
        self._encoders = {
            length: self._encoder.with_length(length)
            for length in {config["inputs"]["max_seq_length"] for config in self._configs.values()}
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.adapters})"

    @property
    def adapters(self) -> list[str]:
        """Names of the adapters."""
        return self.model.list_adapters()

    def labels(self, adapter: str | None = None) -> list[str]:
        """The labels of an adapter, in the order of its probabilities; [] for scores and answers.

        Args:
          adapter: its name. None: there is only one.

        Raises:
          InputError: for an unknown adapter.
        """
        config = self._configs[self._one(adapter)]
        return list(config["labels"]) if type_of(config).labels is None else []

    def __call__(
        self,
        texts: Any,
        others: str | Sequence[str] | None = None,
        adapter: str | Sequence[str] | None = None,
        text_a_column: str | int | None = None,
        text_b_column: str | int | None = None,
    ) -> Any:
        """Answers texts.

        Args:
          texts: one text; a list, array or pandas Series of texts, or a list of pairs; or a pandas
            DataFrame. A tagger also takes lists of words, even as rows of a DataFrame.
          others: the second text of each, where the adapter reads pairs; the contexts of questions.
          adapter: name of the adapter, or one name for each row. None: there is only one.
          text_a_column, text_b_column: of a DataFrame, by name or by number from 0. None: as the
            adapter was trained.

        Returns:
          a dict for one text, a list of them for a list; for a DataFrame a copy with more columns.

        Raises:
          InputError: for an unknown adapter, one text where it reads two, or a value that is not
            text.
        """
        frames.check_arguments(texts, others, text_a_column, text_b_column)
        if frames.is_frame(texts):
            config = self._configs[self._one(adapter)]
            names = frames.column_names(texts)
            text_columns = columns.text_columns(config, names, text_a_column, text_b_column)
            kind = type_of(config)
            answers = self.stream(frames.rows(texts, text_columns), adapter)
            return frames.with_answers(texts, map(kind.cells, answers), kind.columns(config))
        if isinstance(texts, str):
            ends = (".csv", ".tsv", ".jsonl", ".parquet", ".gz")
            if texts.endswith(ends) and storage.exists(texts):
                raise InputError(f"{texts!r} is a file. predict_file(path, output) answers it.")
            row: Any = (texts,) if others is None else (texts, others)
            (answer,) = self.stream([row], adapter)
            return answer
        return list(self.stream(rows_of(texts, others), adapter))

    def stream(
        self,
        rows: Iterable[Row],
        adapter: str | Sequence[str] | None = None,
        cut: CutRows | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yields the answer of each row, in order; a few thousand rows are in memory at a time.

        Args:
          rows: tuples of one text, or of two; for a tagger also lists of words.
          adapter: as in a call.
          cut: counts the rows that are longer than their adapters read. None: a warning does.
        """
        names, done, counted = self._names(adapter), 0, CutRows() if cut is None else cut
        for part in tables.in_parts(rows, tables.AT_ONCE, lambda row: len(str(row))):
            same = [names] * len(part) if isinstance(names, str) else None
            row_names = same or list(names[done : done + len(part)])
            if len(row_names) < len(part):
                raise InputError(f"One adapter a row. Received: {len(names)} names for more rows.")
            yield from self._answers(part, row_names, done, counted)
            done += len(part)
        if isinstance(names, list) and done < len(names):
            raise InputError(f"One adapter a row. Received: {len(names)} names for {done} rows.")
        if cut is None:
            counted.warn()

    def predict_file(
        self,
        path: Folder,
        output: Folder,
        adapter: str | None = None,
        text_a_column: str | int | None = None,
        text_b_column: str | int | None = None,
        **options: Any,
    ) -> int:
        """Answers each row of a file, in order: all its columns and those of the answers.

        Args:
          path: `.csv`, `.tsv` or `.jsonl`, plain or `.gz`, or `.parquet`; local or gs://. For
            other files see `files.answer_file`.
          output: the file to write atomically, `.csv`, `.tsv` or `.jsonl`, plain or `.gz`.
          adapter: as in a call.
          text_a_column, text_b_column: by name or by number from 0. None: as the adapter was
            trained.
          **options: `delimiter`, `header`, `quoted` and `encoding`, None: as the adapter's table;
            `skip_bad_rows`, `overwrite` and `progress`; all as in `tables.answer_file`.

        Returns:
          the number of rows, or of sentences.

        Raises:
          InputError: for a missing or damaged file, a row without its texts, an unknown column.
        """
        if frames.is_frame(path):
            raise InputError("predict_file takes a file. Give the DataFrame to the predictor.")
        name = self._one(adapter)
        config = self._configs[name]
        given = {"text_a_column": text_a_column, "text_b_column": text_b_column} | options
        cut = CutRows()
        rows = answer_file(
            storage.path_of(path),
            storage.path_of(output),
            config,
            lambda rows: self.stream(rows, name, cut),
            given,
            lambda texts: self._problem(name, texts),
        )
        cut.warn(f"{path}: ")
        return rows

    def _one(self, adapter: Any) -> str:
        """The name of the one adapter that answers a table."""
        name = self._names(adapter)
        if isinstance(name, str):
            return name
        raise InputError(f"A table is answered by one adapter. Received: {preview(adapter)}")

    def _names(self, adapter: str | Sequence[str] | None) -> str | list[str]:
        if adapter is None and len(self.adapters) == 1:
            return self.adapters[0]
        adapter = listed(adapter)
        known = [adapter] if isinstance(adapter, str) else adapter
        if isinstance(known, list | tuple) and all(
            isinstance(name, str) and name in self._configs for name in known
        ):
            return adapter if isinstance(adapter, str) else list(known)
        raise InputError(
            f"adapter must be one of {self.adapters}, or a list with one for each row. "
            f"Received: {preview(adapter)}"
        )

    def _answers(
        self, rows: Sequence[Row], names: Sequence[str], before: int, cut: CutRows
    ) -> list[dict[str, Any]]:
        """Answers of rows in memory, each by its adapter; `before` rows came before them."""
        answers: dict[int, dict[str, Any]] = {}
        groups: dict[tuple[Any, ...], list[int]] = {}
        texts = []
        for number, (row, name) in enumerate(zip(rows, names, strict=True)):
            config = self._configs[name]
            texts.append(encodable(columns.texts_of(config, name, row, before + number)))
            if problem := self._problem(name, texts[-1]):
                received = f"Received at {before + number}: {preview(row)}"
                raise InputError(f"The adapter {name!r} cannot answer: {problem}. {received}")
            inputs = tuple(sorted(config["inputs"].items()))
            groups.setdefault((config["head"], inputs), []).append(number)
        for numbers in groups.values():
            part = self._group([texts[i] for i in numbers], [names[i] for i in numbers], cut)
            answers.update(zip(numbers, part, strict=True))
        return [answers[number] for number in range(len(rows))]

    def _problem(self, name: str, texts: Row) -> str | None:
        """Why an adapter cannot answer texts; None if it can."""
        inputs, kind = self._configs[name]["inputs"], type_of(self._configs[name])
        return kind.row_problem(texts, self._encoders[inputs["max_seq_length"]], inputs)

    def _memory_advice(self) -> str:
        more = "Give a smaller batch_size." if self.batch_size > 1 else "Free some of it."
        return f"The memory is not enough for a batch of {self.batch_size} rows. {more}"

    def _group(
        self, rows: Sequence[Row], names: Sequence[str], cut: CutRows
    ) -> Iterable[dict[str, Any]]:
        """Answers of rows whose adapters have one kind of head and of inputs."""

        def run(numbers: np.ndarray, inputs: Inputs) -> np.ndarray:
            row_names = [names[number] for number in numbers]
            adapter = row_names[0] if len(set(row_names)) == 1 else row_names
            return self.model(inputs, adapter=adapter).numpy()

        config, texts = self._configs[names[0]], list(zip(*rows, strict=True))
        inputs, kind = config["inputs"], type_of(config)
        encoder = self._encoders[inputs["max_seq_length"]]
        with memory_context(self._memory_advice, "batch_size"):
            outputs, are_cut = kind.outputs(run, texts, encoder, inputs, self.batch_size)
        cut.add(are_cut, f"{kind.longest}={inputs[kind.longest]}")
        answers: dict[int, dict[str, Any]] = {}
        for name in dict.fromkeys(names):  # Rows of one adapter together: their widths are equal.
            numbers, own = [i for i, n in enumerate(names) if n == name], self._configs[name]
            part = type_of(own).answers([outputs[i] for i in numbers], own)
            answers.update(zip(numbers, part, strict=True))
        return [answers[number] for number in range(len(rows))]


def _named(adapter: Folder | Mapping[str, Folder]) -> list[tuple[str | None, Folder]]:
    """Pairs of a name, None for the adapter's own, and a directory."""
    if isinstance(adapter, Mapping) and adapter:
        return list(adapter.items())
    if isinstance(adapter, str | os.PathLike):
        return [(None, adapter)]
    raise InputError(
        "Adapters are directories, one argument each, or dicts from names to directories. "
        f"Received: {preview(adapter)}"
    )
