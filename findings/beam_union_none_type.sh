#!/bin/bash
# Apache Beam: the schema of a field `str | None` is a pickle of any value, that of Optional[str] a nullable text.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   apache-beam 2.77.0, the types are equal: True
#   WithBar: beam:logical:pythonsdk_any:v1; WriteToParquet: NotImplementedError
#   WithOptional: STRING, nullable: True; WriteToParquet: string
# Expected: equal types have equal schemas; that of Optional is documented as nullable.
# Seen: `str | None` becomes the logical type pythonsdk_any, which other languages, and so SQL, cannot read.
# Affects rows whose class is written with `|`, which linters suggest. Write Optional[str].
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile apache-beam==2.77.0 pyarrow==25.0.1 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import glob
import sys
import tempfile
import typing

import apache_beam as beam
import pyarrow.parquet
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.typehints.schemas import typing_to_runner_api


class WithBar(typing.NamedTuple):
    label: str | None


class WithOptional(typing.NamedTuple):
    label: typing.Optional[str]


def schema(row):
    (field,) = typing_to_runner_api(row).row_type.schema.fields
    return field.type.logical_type.urn or f"STRING, nullable: {field.type.nullable}"


def written(row):
    """The type in a Parquet file; or the error."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with beam.Pipeline(FnApiRunner()) as pipeline:
                rows = pipeline | beam.Create([row("a"), row(None)]).with_output_types(row)
                _ = rows | beam.io.WriteToParquet(f"{folder}/out")
        except NotImplementedError as error:
            return type(error).__name__
        return str(pyarrow.parquet.read_schema(*glob.glob(f"{folder}/*")).field("label").type)


print(f"apache-beam {beam.__version__}, the types are equal: {(str | None) == typing.Optional[str]}")
found = {row.__name__: (schema(row), written(row)) for row in (WithBar, WithOptional)}
for name, parts in found.items():
    print(f"{name}: {'; WriteToParquet: '.join(parts)}")
sys.exit("any" not in found["WithBar"][0] or found["WithOptional"][1] != "string")
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
