"""`adapter-bert score`: scores files of any number on a Beam runner, and says how it went."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.beam import output_folder, require_beam
from adapter_bert_tf.beam.adapter_set import Adapters
from adapter_bert_tf.beam.plan import SUMMARY, Job
from adapter_bert_tf.beam.rows import (
    InputFile,
    find_files,
    format_of,
    in_parallel,
    open_rows,
)
from adapter_bert_tf.beam.shards import ENDINGS, OBJECTS, PARTS, Shards
from adapter_bert_tf.beam.text_rows import TEXT
from adapter_bert_tf.beam.workers import local_options, local_runner
from adapter_bert_tf.data.tables.stream import extension_of
from adapter_bert_tf.errors import (
    Conflict,
    Damaged,
    InputError,
    Mismatch,
    Unavailable,
    error_context,
)
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.sanitize import preview

LOCAL = "local"  # The runner of this machine's processes.
PART_ROWS = 16_384
WAIT_SECONDS = 10.0  # Between lines of progress.
ATTEMPTS = 4  # Of a local run whose workers die.


def score(
    adapter_dirs: Sequence[tuple[str, str]],
    inputs: Sequence[str],
    output: str,
    runner: str = LOCAL,
    workers: int = 1,
    ending: str | None = None,
    adapter_column: str | None = None,
    text_a_column: str | None = None,
    text_b_column: str | None = None,
    reading: Mapping[str, Any] | None = None,
    base: str | None = None,
    stack: str | None = None,
    part_rows: int = PART_ROWS,
    batch_size: int = 32,
    threads: int | None = None,
    max_bad_rows: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    beam_options: Sequence[str] = (),
) -> dict[str, Any]:
    """Scores files, and returns the summary, as in `summary.json`.

    Args:
      adapter_dirs: pairs of a name, "" for its own, and an adapter directory; on one base.
      inputs: files, folders and patterns, local or gs://.
      output: folder of the shards.
      runner: `local`, or the name of a runner of Beam.
      workers: processes of the local runner.
      ending: of the shards, one of `shards.ENDINGS`; None: as of the files.
      adapter_column, text_a_column, text_b_column, base, stack, batch_size: as for `Score`.
      reading: `delimiter`, `header`, `quoted` and `encoding`; None: as the adapter was trained.
      part_rows: rows of a shard.
      threads: of a worker process; None: its share of the cores with the local runner, else all.
      max_bad_rows: the most bad rows; None: any number.
      resume: whether parts that earlier runs have written are kept.
      overwrite: whether another job in the folder may be replaced.
      beam_options: further options of Beam and the runner, as flags.

    Raises:
      InputError: for what can be known before anything starts, and for a run that fails.
    """
    _quiet(runner)
    require_beam()
    _check_options(ending, workers=workers, part_rows=part_rows, batch_size=batch_size)
    adapters = Adapters.read(adapter_dirs, adapter_column, base=base, stack=stack)
    files = find_files(inputs, output)
    _require_remote(runner, [output, *adapters.folders.values(), *(file.path for file in files)])
    job = Job(
        adapters=adapters,
        output=Shards(output.rstrip("/"), ending),
        run=uuid.uuid4().hex,
        part_rows=part_rows,
        text_columns=(text_a_column, text_b_column),
        reading=reading or {},
        batch_size=batch_size,
        threads=_threads(runner, workers) if threads is None else threads,
        max_bad_rows=max_bad_rows,
        resume=resume,
    )
    _check_tables(job, files)
    options, made = _runner(runner, workers, beam_options)
    with output_folder.locked(job.output.folder):
        output_folder.prepare(job, files, overwrite)
        print(f"{len(files):,} files to {output}, runner: {runner}", flush=True)
        watched = _progress(job.output.folder, job.run) if runner == LOCAL else None
        with watched or contextlib.nullcontext():
            _run(job, files, options, made, ATTEMPTS if runner == LOCAL else 1)
    summary = read_record(os.path.join(output, SUMMARY))
    if summary is None or summary.get("run") != job.run:
        raise Unavailable(f"The run ended without {os.path.join(output, SUMMARY)}.")
    return summary


def _quiet(runner: str) -> None:
    """Hides what Beam says of clients that are not installed, and its tracebacks of workers."""
    logging.getLogger().addFilter(_is_of_a_module)
    level = logging.CRITICAL if runner == LOCAL else logging.ERROR
    logging.getLogger("apache_beam").setLevel(level)


def _is_of_a_module(record: logging.LogRecord) -> bool:
    """Whether a line is not of the root logger itself, to which only Beam's modules write."""
    return record.name != "root"


def _check_options(ending: str | None, **numbers: int) -> None:
    """Raises `InputError` for an unknown ending, and for a number below 1."""
    for name, value in numbers.items():
        if value < 1:
            raise InputError(f"{name} is 1 or more. Received: {value}", name)
    if ending is not None and ending not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise InputError(f"format is one of {known}. Received: {ending!r}", "format")


def _require_remote(runner: str, paths: Sequence[str]) -> None:
    """Raises `InputError` for a path that the workers of Google's service cannot see."""
    local = [path for path in paths if not storage.is_remote(path)]
    if "dataflow" in runner.lower() and local:
        raise Unavailable(f"{runner} reads and writes gs:// paths. Received: {local[0]!r}")


def _threads(runner: str, workers: int) -> int:
    """The share of a local worker in the cores; 0, all of them, for others."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) // workers) if runner == LOCAL and workers > 1 else 0


def _check_tables(job: Job, files: Sequence[InputFile]) -> None:
    """Raises `InputError` if the beginnings of the tables show that their columns differ."""
    first: tuple[str, Any] | None = None
    for file, columns in zip(files, in_parallel(lambda f: _columns(job, f), files), strict=True):
        if columns is None or extension_of(file.path) in (OBJECTS, TEXT):
            continue
        if first is None:
            first = file.name, columns
        elif columns != first[1]:
            raise Mismatch(
                f"The files have different columns. {first[0]}: {preview(first[1])}, {file.name}: "
                f"{preview(columns)}. Score them in two jobs."
            )


def _columns(job: Job, file: InputFile) -> list[str] | None:
    """The names of the columns in order; [] without a header, None of a damaged or empty file.

    Raises `InputError` if they are not those of the texts. A damaged file is named at the end.
    """
    try:
        form = format_of(file.path, job.adapters.first, job.reading)
        with open_rows(file.path, form) as rows:
            names = rows.layout().names
    except Damaged:
        return None
    if names == ():
        return None
    with error_context(file.name):
        job.keys(form, names)
    return sorted(names or [])


def _runner(runner: str, workers: int, given: Sequence[str]) -> tuple[Any, Any]:
    """The options of Beam, and the runner. Raises `InputError` where one is unknown."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import create_runner

    own = local_options(workers) if runner == LOCAL else {"runner": runner}
    if runner != LOCAL and workers > 1:
        raise Conflict(
            f"workers is for the runner local; {runner} has options of its own.", "workers"
        )
    try:
        options = PipelineOptions(list(given), **own)
        unknown = set(options.get_all_options(retain_unknown_options=True)) - set(
            options.get_all_options()
        )
    except SystemExit as error:
        raise InputError(f"Beam does not take these options: {preview(list(given))}") from error
    if unknown:
        flags = ", ".join(f"--{name}" for name in sorted(unknown))
        raise InputError(f"Neither this command nor Beam has {flags}.")
    import apache_beam as beam

    try:
        made = local_runner(workers) if runner == LOCAL else create_runner(runner)
        beam.Pipeline(made, options)  # The runner checks the options.
    except Exception as error:
        raise Unavailable(f"The runner {runner!r} is not there: {error}", "runner") from error
    return options, made


def _run(job: Job, files: Sequence[InputFile], options: Any, runner: Any, attempts: int) -> None:
    """Runs the job; again, for the parts that are not written, where a local worker died."""
    import apache_beam as beam

    from adapter_bert_tf.beam.pipeline import build

    for attempt in range(1, attempts + 1):
        pipeline = beam.Pipeline(runner, options)
        build(pipeline, job, list(files))
        try:
            state = pipeline.run().wait_until_finish()
        except Exception as error:
            if not _is_lost(error) or attempt == attempts:
                raise _failure(error) from error
            print(f"A worker process died; the rest is scored (try {attempt + 1} of {attempts}).")
            continue
        if state not in (None, "DONE"):
            raise Unavailable(f"The job ended as {state}. Run it again with resume.", "resume")
        return


def _is_lost(error: Exception) -> bool:
    """Whether a worker of the local runner is gone: its channel ends, or the read from it fails."""
    of_channel = type(error).__module__.startswith("grpc")
    return of_channel or "Channel closed prematurely" in str(error)


# The error of a worker, at the end of its traceback, and the step that Beam names after it.
OWN_ERROR = re.compile(r"adapter_bert_tf\.errors\.(\w+): (.+?)(?: \[while running|$)", re.M | re.S)
WHERE = re.compile(r"\s*\[while running .*", re.S)
LAST_ERROR = re.compile(r"^(\w[\w.]*(?:Error|Exception|Interrupt)): (.*)$", re.M)


def _failure(error: Exception) -> InputError:
    """One message for the error of a worker, which Beam quotes with its tracebacks."""
    text = str(error)
    if isinstance(error, InputError):
        return type(error)(WHERE.sub("", text), *error.arguments)
    if found := OWN_ERROR.search(text):
        return InputError(found[2].strip().split("\n")[0], "max_bad_rows", "resume")
    errors = [*LAST_ERROR.finditer(text)]
    reason = f"{errors[-1][1]}: {errors[-1][2]}" if errors else f"{type(error).__name__}: {text}"
    reason = WHERE.sub("", reason)
    return Unavailable(
        f"The job failed: {preview(reason[:300])}. Parts that are written stay: the same command "
        "with resume goes on.",
        "resume",
    )


@contextlib.contextmanager
def _progress(folder: str, run: str) -> Iterator[None]:
    """Prints every few seconds how many rows are written, while the block runs."""
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(folder, run, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(folder: str, run: str, ended: threading.Event) -> None:
    """Reads the records of parts as they come."""
    start, seen = time.monotonic(), dict[str, tuple[int, bool]]()
    while not ended.wait(WAIT_SECONDS):
        total = 0
        for place, _, names in storage.walk(os.path.join(folder, PARTS)):
            for path in (os.path.join(place, name) for name in names):
                record = read_record(path) if path not in seen else None
                if record is not None and "parts" in record and "run" in record:
                    seen[path] = int(record["rows"]), record["run"] == run
                elif record is not None:
                    total += int(record.get("rows", 0))
        done = sum(rows for rows, _ in seen.values())
        new = sum(rows for rows, is_new in seen.values() if is_new)
        rate = new / (time.monotonic() - start)
        left = f", {(total - done) / rate / 60:.0f} minutes left" if rate and total else ""
        of_all = f"{total:,}" if total else "?"
        print(f"  {done:,} of {of_all} rows  {rate:.0f} rows/s{left}", flush=True)
