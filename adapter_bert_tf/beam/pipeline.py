"""The pipeline of a scoring job: files, their parts, answers, shards, and the totals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.ml.inference.base import KeyedModelHandler, RunInference

from adapter_bert_tf.beam.metrics import Metrics
from adapter_bert_tf.beam.plan import SUMMARY, BadRows, Job
from adapter_bert_tf.beam.rows import DAMAGE, InputFile, Part, cut, format_of, read_part
from adapter_bert_tf.beam.shards import key_names
from adapter_bert_tf.beam.totals import Totals
from adapter_bert_tf.beam.transform import AdapterHandler
from adapter_bert_tf.data.tables.rows import Row
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.records import write_record

BAD, DAMAGED, DONE = "bad", "damaged", "done"  # Tags.


def build(pipeline: Any, job: Job, files: list[InputFile]) -> None:
    """Adds the job to a pipeline.

    Only parts, not their rows, go from worker to worker: a part is read, answered and written by
    one, in memory that does not depend on the number of rows.
    """
    scanned = (
        pipeline
        | "Files" >> beam.Create(files, reshuffle=False)
        | "Share files" >> beam.Reshuffle()
        | "Scan" >> beam.ParDo(_Scan(job)).with_outputs(BAD, DAMAGED, main="parts")
    )
    bad = scanned[BAD] | "Count bad rows" >> beam.CombineGlobally(BadRows.sum)
    parts = scanned.parts | "Share parts" >> beam.Reshuffle()
    read_all = beam.ParDo(_Read(job), beam.pvalue.AsSingleton(bad)).with_outputs(DONE, main="rows")
    read = parts | "Read" >> read_all

    handler = AdapterHandler(job.adapters, 1, job.batch_size, job.threads)
    written = (
        read.rows
        | "Answer" >> RunInference(KeyedModelHandler(handler))
        | "Write" >> beam.ParDo(_Write(job))
    )
    totals = (written, read[DONE]) | beam.Flatten() | "Total" >> beam.CombineGlobally(_Total())
    damaged = beam.pvalue.AsList(scanned[DAMAGED])
    _ = totals | "Summary" >> beam.ParDo(_Summary(job), damaged)


class _Scan(beam.DoFn):
    """Cuts a file into parts, and counts the rows that cannot be read."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def process(self, file: InputFile) -> Iterator[Any]:
        rows = parts = 0
        bad = BadRows()
        try:
            form = format_of(file.path, self._job.adapters.first, self._job.reading)
            for part, own in cut(file, form, self._job.part_rows):
                bad = BadRows.sum([bad, self._bad(part, own)])
                rows, parts = rows + part.num_rows, parts + 1
                yield part
        except InputError as error:
            yield beam.pvalue.TaggedOutput(DAMAGED, {"file": file.name, "reason": str(error)})
        except DAMAGE as error:
            reason = f"it is damaged or incomplete: {error}. Copy it again."
            yield beam.pvalue.TaggedOutput(DAMAGED, {"file": file.name, "reason": reason})
        write_record(self._job.output.file_record_path(file), {"rows": rows, "parts": parts})
        yield beam.pvalue.TaggedOutput(BAD, bad)

    def _bad(self, part: Part, rows: list[Row]) -> BadRows:
        keys = self._job.keys(part.form, part.layout.names) if rows else {}
        asked = [(row, self._job.adapters.ask(row, keys)) for row in rows]
        wrong = [
            f"{part.file.name}, line {row.line}: {reason}"
            for row, reason in asked
            if isinstance(reason, str)
        ]
        return BadRows(len(wrong), tuple(wrong[: BadRows.MOST]))


class _Read(beam.DoFn):
    """Reads the rows of a part, with what adapters are asked; leaves out parts that are whole."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def process(self, part: Part, bad_rows: BadRows) -> Iterator[Any]:
        job = self._job
        job.require_few(bad_rows)
        record = job.output.record(part)
        if record is not None and (job.resume or record.get("run") == job.run):
            yield beam.pvalue.TaggedOutput(DONE, Totals.from_json(record))
            return
        rows = read_part(part)
        keys = job.keys(part.form, part.layout.names) if rows else {}
        yield (part, rows), [job.adapters.ask(row, keys) for row in rows]


class _Write(beam.DoFn):
    """Writes a part, then the record that it is whole."""

    def __init__(self, job: Job) -> None:
        self._job, self._metrics = job, Metrics()

    def process(self, scored: Any) -> Iterator[Totals]:
        (part, rows), answered = scored
        own_keys = key_names(part.layout.names)
        names = self._job.adapters.answer_names([*(part.layout.names or ()), *own_keys])
        totals = self._job.output.write(part, rows, answered.rows, names, own_keys)
        totals.cut_rows = answered.cut
        self._job.output.write_record(part, totals, self._job.run)
        for answer in answered.rows:
            self._metrics.add(answer)
        yield totals


class _Total(beam.CombineFn):
    """The sum of `Totals`."""

    def create_accumulator(self) -> Totals:
        return Totals()

    def add_input(self, total: Totals, other: Totals) -> Totals:
        total.merge(other)
        return total

    def merge_accumulators(self, totals: Any) -> Totals:
        merged = Totals()
        for total in totals:
            merged.merge(total)
        return merged

    def extract_output(self, total: Totals) -> Totals:
        return total


class _Summary(beam.DoFn):
    """Writes `summary.json`; its presence says that the run ended."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def process(self, totals: Totals, damaged: list[dict[str, str]]) -> None:
        ordered = sorted(damaged, key=lambda file: file["file"])
        values = {"run": self._job.run, **totals.as_json(), "damaged_files": ordered}
        write_record(os.path.join(self._job.output.folder, SUMMARY), values)
        self._job.require_few(BadRows(totals.bad_rows))
