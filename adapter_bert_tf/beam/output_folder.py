"""The output folder of scoring jobs: which job it holds, and what may be written to it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.beam.plan import SUMMARY, Job
from adapter_bert_tf.beam.rows import InputFile, output_stem
from adapter_bert_tf.beam.shards import BAD_ROWS, ENDINGS, PARTS
from adapter_bert_tf.errors import Occupied
from adapter_bert_tf.output import lock
from adapter_bert_tf.output.atomic import UNFINISHED, require_creatable
from adapter_bert_tf.output.records import digest, read_record, write_record

RECORD = "score.json"
READING = ("delimiter", "header", "quoted", "encoding")


def identity(job: Job) -> dict[str, Any]:
    """What makes another job of a job, whatever its files: a change would mix two in one folder."""
    adapters, (text_a, text_b) = job.adapters, job.text_columns
    return {
        "adapter_dir": {name: digest(config) for name, config in adapters.configs.items()},
        "adapter_column": adapters.column,
        "stack": _plain(adapters.stack),
        "base_model": adapters.base,
        "text_a_column": text_a,
        "text_b_column": text_b,
        "format": job.output.ending,
        "part_rows": job.part_rows,
        **{name: job.reading.get(name) for name in READING},
    }


def _plain(stack: Any) -> Any:
    return dict(stack) if isinstance(stack, Mapping) else stack


def prepare(job: Job, files: Sequence[InputFile], overwrite: bool) -> None:
    """Makes an output folder that of a job; removes what earlier runs wrote of changed files.

    The caller holds its lock. Raises `InputError` if the folder holds another job or foreign files;
    then nothing is changed.
    """
    folder = job.output.folder
    record, own = read_record(os.path.join(folder, RECORD)), identity(job)
    if record is None:
        _require_empty(folder)
    else:
        _take_over(job, files, record, own, overwrite)
    now = {file.name: [file.length, file.mtime_nsec] for file in files}
    write_record(os.path.join(folder, RECORD), {"job": own, "files": now})


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Holds the lock of an output folder, and removes what killed workers were writing.

    Raises `InputError` if another process holds it, or a folder cannot be made there.
    """
    require_creatable(folder)
    if storage.exists(folder) and not storage.isdir(folder):
        raise Occupied(f"{folder!r} is a file. Choose another folder for the output.")
    with lock.locked(folder):
        for place, _, names in [] if storage.is_remote(folder) else storage.walk(folder):
            for name in names:
                if name.startswith(UNFINISHED):
                    storage.remove(os.path.join(place, name))
        yield


def _require_empty(folder: str) -> None:
    if set(storage.listdir(folder)) - {lock.FILE}:
        raise Occupied(
            f"{folder!r} has files that are not of a scoring job. Choose another folder for the "
            "output."
        )


def _take_over(
    job: Job, files: Sequence[InputFile], record: dict[str, Any], own: Any, overwrite: bool
) -> None:
    folder = job.output.folder
    earlier, scored = record.get("job"), record.get("files")
    earlier, scored = (v if isinstance(v, dict) else {} for v in (earlier, scored))
    different = [name for name, value in own.items() if earlier.get(name) != value]
    now = {file.name: [file.length, file.mtime_nsec] for file in files}
    gone = [name for name in scored if name not in now]
    if (different or gone) and not overwrite:
        what = f"another job, which differs in {', '.join(different)}"
        what = what if different else f"the rows of {gone[0]}, which is not among the files now"
        raise Occupied(
            f"{folder!r} holds {what}. Choose another folder, or pass overwrite=True to replace "
            "what it holds.",
            *different,
            "overwrite=True",
        )
    changed = [name for name in scored if different or now.get(name) != scored[name]]
    _remove(folder, {output_stem(name) for name in changed})
    if storage.exists(os.path.join(folder, SUMMARY)):
        storage.remove(os.path.join(folder, SUMMARY))


def _remove(folder: str, stems: set[str]) -> None:
    """Removes the shards and bad rows of files; first the records that these are whole."""
    if not stems:
        return
    found = [
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in storage.walk(folder)
        for name in names
    ]
    own = [name for name in found if _stem_of(name) in stems]
    for name in sorted(own, key=lambda name: not name.startswith(PARTS)):
        storage.remove(os.path.join(folder, name))


def _stem_of(name: str) -> str | None:
    """The file whose shard, bad rows or record has a name; None for other names."""
    if name.startswith(f"{PARTS}/"):
        return os.path.dirname(name.removeprefix(f"{PARTS}/"))
    name = name.removeprefix(f"{BAD_ROWS}/")
    stem = next((name.removesuffix(end) for end in ENDINGS if name.endswith(end)), "")
    before, _, number = stem.rpartition("-")
    return before if len(number) >= 5 and number.isdigit() else None
