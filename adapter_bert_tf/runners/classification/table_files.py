"""The table files of a task of the user's own: which are read, and what looks wrong about them."""

import dataclasses
import os
from collections.abc import Callable, Collection, Mapping

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.file_sets import find_files, fixed_part, split_paths
from adapter_bert_tf.data.tables.blocks import read_blocks
from adapter_bert_tf.data.tables.delimiters import (
    actual_encoding,
    find_delimiter,
    read_beginning,
    warn_of_delimiter,
    warn_of_encoding,
)
from adapter_bert_tf.data.tables.files import find_file
from adapter_bert_tf.data.tables.malformed_rows import RowFindings
from adapter_bert_tf.data.tables.stream import OBJECTS, extension_of, table_format
from adapter_bert_tf.errors import Conflict, error_context
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks import Source, Task
from adapter_bert_tf.tasks.own import delimiter_of, is_number

STEMS = ("train", "dev", "test")
EXTENSIONS = (("csv", "tsv"), ("jsonl", "parquet"))  # The second, if there is none of the first.
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
OTHER_NAMES = ("validation", "valid", "val", "eval")  # Common names of a development set.


def own_files(folder: str) -> tuple[str, str]:
    """Returns the extension of a folder's tables, and the name of the training data without it.

    A table of any name is the training data if it is the only one. Raises `InputError` for two
    files of one table, and for tables with both extensions.
    """
    files = storage.listdir(folder) if storage.isdir(folder) else []
    names = {name.removesuffix(".gz") for name in files}
    train, extensions = "train", set[str]()
    for ends in EXTENSIONS:
        extensions = {end for end in ends if any(f"{stem}.{end}" in names for stem in STEMS)}
        tables = [name for name in names if name.rpartition(".")[2] in ends]
        if not extensions and len(tables) == 1:
            train, _, extension = tables[0].rpartition(".")
            extensions = {extension}
        if extensions:
            break
    if len(extensions) == 2:
        raise Conflict(
            f"{folder} holds both {' and '.join(f'.{e}' for e in sorted(extensions))} files: "
            f"{sorted(names)[:12]}. Move one kind to a "
            "folder of its own."
        )
    extension = extensions.pop() if extensions else "tsv"
    tables = [f"{stem}.{extension}" for stem in (train, "dev", "test")]
    if twice := [name for name in tables if {name, f"{name}.gz"} <= set(files)]:
        raise Conflict(f"{folder} holds both {twice[0]} and {twice[0]}.gz. Keep one of them there.")
    return extension, train


def named_files(config: RunConfig) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Returns a dict from split to the value of its flag, such as `--train_file`, and its files.

    Raises `InputError` for a path that stands for no file, or for one that is no table.
    """
    named = {}
    for split in STEMS:
        if value := config.value(f"{split}_file"):
            with error_context(f"--{split}_file"):
                endings = [f"{end}{gz}" for end in ENDINGS for gz in ("", ".gz")]
                files = tuple(find_files(split_paths(str(value)), endings, "table"))
                for path in files:
                    table_format(path)
            named[split] = (str(value), files)
    return named


def folder_of_named(config: RunConfig) -> str | None:
    """Returns the folder of the files that the user named; None if there are none."""
    values = [config.value(f"{split}_file") for split in STEMS]
    for path in (path for value in values for path in split_paths(str(value or ""))):
        part = fixed_part(path)
        is_folder = part != path or storage.isdir(part)
        return part if is_folder else os.path.dirname(part) or "."
    return None


def with_named_files(
    task: Task,
    named: Mapping[str, tuple[str, tuple[str, ...]]],
    folder: str | None,
    config: RunConfig,
) -> Task:
    """The task with the files that the user named; without a folder it has no others."""
    if not named:
        return task
    table, (layout,) = config.table, task.layouts
    sources = {}
    for split, source in layout.items():
        file, files = named.get(split, (source.file if folder else "", ()))
        source = dataclasses.replace(source, file=file, files=files)
        if files:
            quoted = source.extension == "csv" if table.quoted is None else table.quoted
            delimiter = delimiter_of(table.delimiter, source.extension)
            source = dataclasses.replace(source, quoted=quoted, delimiter=delimiter)
        sources[split] = source
    return dataclasses.replace(task, layouts=(sources,))


def with_actual_encodings(task: Task, folder: str) -> Task:
    """The task of an adapter's tables, each read in the encoding that the file itself shows."""

    def actual(source: Source) -> Source:
        path, recorded = find_file(source, folder), source.encodings[0]
        if path is None:
            return source
        return dataclasses.replace(source, encodings=(actual_encoding(path, recorded),))

    return _with_sources(task, actual)


def with_found_delimiters(task: Task, folder: str) -> Task:
    """The task of a user's tables, each read with the delimiter that the file itself shows."""

    def found(source: Source) -> Source:
        path = find_file(source, folder)
        columns = (source.columns.text_a, source.columns.text_b, source.columns.label)
        has_one_column = not source.has_header and set(columns) <= {"0", None}
        if path is None or has_one_column or extension_of(path) in OBJECTS:
            return source
        beginning = read_beginning(path, source.encodings[0])
        delimiter = find_delimiter(beginning, source.delimiter, source.quoted)
        return dataclasses.replace(source, delimiter=delimiter)

    return _with_sources(task, found)


def _with_sources(task: Task, change: Callable[[Source], Source]) -> Task:
    (layout,) = task.layouts
    return dataclasses.replace(task, layouts=({s: change(layout[s]) for s in layout},))


def say_found_delimiters(task: Task, roles: Collection[str]) -> None:
    """Says which of the files that are read have another delimiter than is usual."""
    for source in (task.layouts[0][role] for role in STEMS if role in roles):
        if source.delimiter != delimiter_of(None, source.extension):
            warn_of_delimiter(source.file, source.delimiter)


def warn_of_encodings(task: Task, folder: str, roles: Collection[str], recorded: str) -> None:
    """Warns of the files that are read in another encoding than the recorded one."""
    for source in (task.layouts[0][role] for role in STEMS if role in roles):
        path = find_file(source, folder)
        if path and source.encodings[0] != recorded:
            warn_of_encoding(path, recorded)


def warn_of_other_names(folder: str, dev: str) -> None:
    """Warns of a file that may be meant as the development set, if `dev` is missing."""
    files = set(storage.listdir(folder)) if storage.isdir(folder) else set()
    others = [dev.replace("dev", stem) for stem in OTHER_NAMES]
    if ignored := [name for name in others if {name, f"{name}.gz"} & files]:
        logging.warning(
            "%s/%s is not read: a development set must be named %s.", folder, ignored[0], dev
        )


def warn_of_other_columns(task: Task, folder: str, roles: Collection[str]) -> None:
    """Warns of a column given by its number whose name differs between the files that are read."""
    columns = task.layouts[0]["train"].columns
    given = [c for c in (columns.text_a, columns.text_b, columns.label) if c and is_number(str(c))]
    headers = _headers(task, folder, roles) if given else {}
    for column in given:
        names_by_file = {
            file: names[int(column)]
            for file, names in headers.items()
            if column not in names and int(column) < len(names)
        }
        if len(set(names_by_file.values())) > 1:
            names = ", ".join(f"{preview(name)} in {file}" for file, name in names_by_file.items())
            logging.warning("%s: column %s is %s. Is it the same?", folder, column, names)


def _headers(task: Task, folder: str, roles: Collection[str]) -> dict[str, list[str]]:
    """Returns a dict from each file with a header that is read to its column names."""
    sources = [task.layouts[0][role] for role in STEMS if role in roles]
    existing = [s for s in sources if s.has_header and find_file(s, folder)]
    return {s.file: [cell.strip() for cell in first_row(s, folder)] for s in existing}


def first_row(source: Source, folder: str) -> list[str]:
    """Returns the cells of the first row of a source, or the names of its columns."""
    for block in read_blocks(source, folder, RowFindings(source.file)):
        return block.header or block.rows[0][1]
    return []
