"""What adapters read of a row: which adapter, and which of its columns hold the texts."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from adapter_bert_tf import storage
from adapter_bert_tf.data.tables.rows import Row, texts_of
from adapter_bert_tf.errors import Conflict, InputError, Missing
from adapter_bert_tf.predict.columns import keys_of, num_texts, text_columns
from adapter_bert_tf.predict.inputs import encodable
from adapter_bert_tf.predict.writing import unused_names
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.contents import name_of
from adapter_bert_tf.store.files import read_adapter_config
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.task_types import type_of

Request: TypeAlias = tuple[str, tuple[str, ...]]  # The name of an adapter, and its texts.
# From an adapter to the columns of its texts; or why a table lacks them, as a sentence.
Keys: TypeAlias = Mapping[str, Sequence[str] | str]


@dataclasses.dataclass(frozen=True)
class Adapters:
    """Saved adapters on one base, as plain values that go to workers.

    Args:
      folders: dict from name to adapter directory; workers read them there.
      configs: their configurations, by the same names.
      base: the base that they were trained on; None: the one that the first adapter names.
      stack: as for `Predictor`.
      column: of the rows, with the name of the adapter of each; None: there is one adapter.
    """

    folders: Mapping[str, str]
    configs: Mapping[str, Mapping[str, Any]]
    base: str | None = None
    stack: str | Mapping[str, str] | None = None
    column: str | None = None

    @classmethod
    def read(
        cls, folders: Sequence[tuple[str, str]], column: str | None = None, **options: Any
    ) -> Adapters:
        """Reads the configurations. Raises `InputError` for a damaged one, or equal names.

        `folders` are pairs of a name, "" for the adapter's own, and a directory.
        """
        configs = [read_adapter_config(folder) for _, folder in folders]
        for config, (_, folder) in zip(configs, folders, strict=True):
            require_one_task(config, folder)
        names = [given or name_of(c) for (given, _), c in zip(folders, configs, strict=True)]
        if len(set(names)) < len(names) or not names:
            raise Conflict(
                f"Each adapter needs a name of its own: NAME=FOLDER. Received: {preview(names)}"
            )
        if len(names) > 1 and column is None:
            raise Missing(
                f"There are {len(names)} adapters: which column names the adapter of a row? "
                "Set adapter_column.",
                "adapter_column",
            )
        paths = [storage.path_of(folder) for _, folder in folders]
        named = dict(zip(names, paths, strict=True)), dict(zip(names, configs, strict=True))
        return cls(*named, column=column, **options)

    @property
    def first(self) -> Mapping[str, Any]:
        """The configuration of the first adapter, whose table says how files are read."""
        return next(iter(self.configs.values()))

    def answer_names(self, taken: Sequence[str]) -> dict[str, str]:
        """Dict from a column of the answers to its name in a table that has columns already."""
        columns = [type_of(config).columns(config) for config in self.configs.values()]
        distinct = list(dict.fromkeys(itertools.chain.from_iterable(columns)))
        return dict(zip(distinct, unused_names(distinct, taken), strict=True))

    def keys(
        self, names: Sequence[str] | None, text_a: str | None = None, text_b: str | None = None
    ) -> Keys:
        """The columns of each adapter's texts in a table with these columns.

        Args:
          names: of the columns; None without a header.
          text_a, text_b: the user's choice; None: as each adapter was trained.

        Raises:
          InputError: for a table without the columns of any adapter.
        """
        if self.column is not None and names is not None and self.column not in names:
            raise Missing(
                f"There is no column {self.column!r} that names the adapters. "
                f"Received: {preview(list(names))}",
                "adapter_column",
            )
        keys, errors = dict[str, Sequence[str] | str](), list[InputError]()
        reads_pairs = any(num_texts(config) > 1 for config in self.configs.values())
        for name, config in self.configs.items():
            own = text_a, text_b if num_texts(config) > 1 or not reads_pairs else None
            try:
                keys[name] = keys_of(text_columns(config, names, *own), names)
            except InputError as error:  # Only rows of this adapter need the columns.
                keys[name] = str(error)
                errors.append(error)
        if len(errors) == len(keys):
            raise errors[0]
        return keys

    def ask(self, row: Row, keys: Keys) -> Request | str:
        """The adapter and the texts of a row; or why it has none, as a sentence."""
        if row.error is not None:
            return row.error
        name: Any = next(iter(keys)) if self.column is None else row.values.get(self.column)
        if not isinstance(name, str) or name not in keys:
            known = preview(list(keys))
            return f"the column {self.column!r} names one of {known}. Received: {preview(name)}."
        columns = keys[name]
        texts = columns if isinstance(columns, str) else texts_of(row, columns)
        return texts if isinstance(texts, str) else (name, encodable(texts))


def reason_of(error: BaseException) -> str:
    """Why a row is bad, for its dead letter."""
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
