#!/bin/bash
# Apache Beam: batches of similar length are made in streaming alone; a batch job ignores the buckets.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   apache-beam 2.77.0
#   with bucket_boundaries: 8 of 8 batches hold lengths of both buckets
#   and with max_batch_duration_secs: 0 of 8
# Expected: BatchElements(length_fn=, bucket_boundaries=), which is what a ModelHandler's batch_length_fn becomes,
# puts short and long elements into batches of their own, or refuses what has no effect.
# Seen: it does so only with max_batch_duration_secs, which is documented for streaming. Without it the two settings
# are accepted and have no effect, so each batch is padded to its longest text.
# Affects who scores texts in batch jobs with RunInference, and expects its batches to have little padding.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile apache-beam==2.77.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

TEXTS = ["short", "a long text " * 9] * 64


def batches(**more):
    """The batches that a batch job makes of short and long texts."""
    with tempfile.NamedTemporaryFile("r") as file:
        settings = {"min_batch_size": 16, "max_batch_size": 16, "length_fn": len, "bucket_boundaries": [20]}
        with beam.Pipeline(FnApiRunner()) as pipeline:
            made = pipeline | beam.Create(TEXTS) | beam.BatchElements(**settings, **more)
            lines = made | beam.Map(lambda batch: " ".join(str(len(text)) for text in batch))
            _ = lines | beam.io.WriteToText(file.name, shard_name_template="")
        return [{*line.split()} for line in open(file.name)]


def mixed(found):
    return sum(len(lengths) > 1 for lengths in found), len(found)


print(f"apache-beam {beam.__version__}")
plain, timed = mixed(batches()), mixed(batches(max_batch_duration_secs=1))
print(f"with bucket_boundaries: {plain[0]} of {plain[1]} batches hold lengths of both buckets")
print(f"and with max_batch_duration_secs: {timed[0]} of {timed[1]}")
sys.exit(plain[0] < plain[1] or timed[0] > 0)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
