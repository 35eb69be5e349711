#!/bin/bash
# google-cloud-bigquery: options of Parquet that are set on a LoadJobConfig are lost.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   google-cloud-bigquery 3.47.0
#   set on the configuration: {}, set before: {'enableListInference': True}
# Expected: `config.parquet_options.enable_list_inference = True` is sent, or raises an error.
# Seen: it is not sent. BigQuery then loads lists as records with a field `list`.
# Cause: the property returns a new object from a copy of the configuration's values.
# Affects every load of Parquet files with lists. Set the options of a ParquetOptions first.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile google-cloud-bigquery==3.47.0
cat > "$folder/find.py" <<'PYTHON'
from google.cloud import bigquery


def sent(config):
    return config.to_api_repr()["load"]["parquetOptions"]


late = bigquery.LoadJobConfig(source_format="PARQUET", parquet_options=bigquery.ParquetOptions())
late.parquet_options.enable_list_inference = True
options = bigquery.ParquetOptions()
options.enable_list_inference = True
early = bigquery.LoadJobConfig(source_format="PARQUET", parquet_options=options)
print(f"google-cloud-bigquery {bigquery.__version__}")
print(f"set on the configuration: {sent(late)}, set before: {sent(early)}")
raise SystemExit(0 if sent(late) == {} and sent(early) == {"enableListInference": True} else 1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py"
