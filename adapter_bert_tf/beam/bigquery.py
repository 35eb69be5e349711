"""Tables of BigQuery as the files of a job: exported before it, and loaded after it.

A part of a job is a place in a file, but Beam's `ReadFromBigQuery` returns single rows in any
order, and removes the files of its export. So the same jobs of BigQuery are started without Beam.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Conflict, InputError, Missing, Occupied, Unavailable
from adapter_bert_tf.output.records import read_record, write_record
from adapter_bert_tf.sanitize import preview

PREFIX = "bigquery://"
NAME = re.compile(r"([^/]+)\.([^/.]+)\.([^/.]+)")  # A project may have dots: `example.com:p`.
PARQUET = ".parquet"
RECORD = "_exported.json"  # In the folder of an export; written when it is whole.


class Tables:
    """The tables among the inputs and the output of a job; without one, it does nothing.

    Args:
      inputs: paths, and `bigquery://PROJECT.DATASET.TABLE`.
      output: a path, or such a table.
      temporary: folder in a bucket, for exports and for the shards of a table.
      ending: of the shards; None: the usual one.

    Attributes:
      names: of all tables, in their order.
      output: the folder that the job writes.

    Raises:
      InputError: for a name or a folder that cannot be used, and if the client of BigQuery is not
        installed.
    """

    def __init__(
        self, inputs: Sequence[str], output: str, temporary: str | None, ending: str | None
    ) -> None:
        self._inputs, self._target = inputs, output
        self.names = [_name_of(path) for path in (*inputs, output) if path.startswith(PREFIX)]
        if self.names:
            _require_bucket(temporary)
            _import_client()
        self._exports = os.path.join(temporary or "", "bigquery")
        self.output, self.ending = output, ending
        if output.startswith(PREFIX):
            if ending not in (None, PARQUET):
                raise Conflict(f"A table is loaded from {PARQUET}. Received: {ending!r}", "format")
            self.output = os.path.join(self._exports, "scored", _name_of(output))
            self.ending = PARQUET

    def export(self, overwrite: bool) -> list[str]:
        """The inputs, with a folder of files in place of each table.

        An export of the same content of a table is used again, so a job can resume.

        Args:
          overwrite: whether the table of the output may be one that no job has written.

        Raises:
          InputError: if it may not, or BigQuery refuses something.
        """
        if self._target.startswith(PREFIX) and not overwrite:
            self._require_replaceable(_name_of(self._target))
        return [
            self._export(_name_of(path)) if path.startswith(PREFIX) else path
            for path in self._inputs
        ]

    def _require_replaceable(self, name: str) -> None:
        from google.api_core.exceptions import NotFound

        bigquery = _import_client()
        with _errors_about(name), contextlib.suppress(NotFound):
            bigquery.Client(project=_project(name)).get_table(_reference(bigquery, name))
            if read_record(self._loaded_path(name)) is None:
                raise Occupied(
                    f"The table {name} exists, and no job with this temp_location has written it. "
                    "Choose another one, or pass overwrite=True to replace it.",
                    "temp_location",
                    "overwrite=True",
                )

    def _loaded_path(self, name: str) -> str:
        return os.path.join(self._exports, "loaded", f"{name}.json")

    def _export(self, name: str) -> str:
        bigquery = _import_client()
        with _errors_about(name):
            client = bigquery.Client(project=_project(name))
            table = client.get_table(_reference(bigquery, name))
            folder = os.path.join(self._exports, f"{name}-{table.modified:%Y%m%dT%H%M%S%f}")
            if read_record(os.path.join(folder, RECORD)) is None:
                storage.rmtree(folder)  # Of an export that did not end.
                client.extract_table(
                    table,
                    os.path.join(folder, f"{table.table_id}-*{PARQUET}"),
                    location=table.location,
                    job_config=bigquery.ExtractJobConfig(destination_format="PARQUET"),
                ).result()
                write_record(os.path.join(folder, RECORD), {"table": name})
        return folder

    def load(self, summary: Mapping[str, Any]) -> None:
        """Replaces the table of the output by the shards of a job, at once.

        Prints that it stays as it was if no row was scored.

        Raises `InputError` if it cannot be written, or has not as many rows as were scored.
        """
        rows = summary["rows"] - summary["bad_rows"]
        if not self._target.startswith(PREFIX):
            return
        name, bigquery = _name_of(self._target), _import_client()
        if not rows:
            print(f"No row was scored, so the table {name} was not changed.", flush=True)
            return
        lists = bigquery.ParquetOptions()
        lists.enable_list_inference = True  # Else a list becomes a record.
        config = bigquery.LoadJobConfig(
            source_format="PARQUET",
            write_disposition="WRITE_TRUNCATE",
            parquet_options=lists,
            column_name_character_map="V2",  # `_` for what a name cannot hold, such as `!`.
        )
        with _errors_about(name):
            job = bigquery.Client(project=_project(name)).load_table_from_uri(
                os.path.join(self.output, f"*{PARQUET}"),
                _reference(bigquery, name),
                job_config=config,
            )
            job.result()
        write_record(self._loaded_path(name), {"rows": job.output_rows})
        if job.output_rows != rows:
            raise Unavailable(f"{name} has {job.output_rows:,} rows; {rows:,} were scored.")


def _name_of(path: str) -> str:
    """PROJECT.DATASET.TABLE. Raises `InputError` for another form."""
    name = path.removeprefix(PREFIX)
    if not NAME.fullmatch(name):
        raise InputError(f"A table is {PREFIX}PROJECT.DATASET.TABLE. Received: {preview(path)}")
    return name


def _project(name: str) -> str:
    return name.rsplit(".", 2)[0]


def _reference(bigquery: Any, name: str) -> Any:
    """The client's name of a table; as text it would refuse the dots of a project."""
    project, dataset, table = name.rsplit(".", 2)
    return bigquery.TableReference(bigquery.DatasetReference(project, dataset), table)


def _require_bucket(folder: str | None) -> None:
    if not folder:
        raise Missing(
            "A table needs temp_location, a folder gs://BUCKET/... for its rows as files.",
            "temp_location",
        )
    if not storage.is_remote(folder):
        raise InputError(f"temp_location is a folder gs://. Received: {folder!r}", "temp_location")


def _import_client() -> Any:
    try:
        from google.cloud import bigquery
    except ImportError as error:
        raise Unavailable(
            'The client of BigQuery is not installed: pip install "apache-beam[gcp]".'
        ) from error
    return bigquery


@contextlib.contextmanager
def _errors_about(name: str) -> Iterator[None]:
    """Raises `InputError` in place of errors of Google's clients."""
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except (GoogleAPIError, GoogleAuthError) as error:
        raise Unavailable(f"BigQuery, {name}: {preview(str(error))}") from error
