"""Metrics by step, written to `metrics.jsonl` and TensorBoard."""

import json
import os
import time

import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.sanitize import parse_json

FILE = "metrics.jsonl"
SECONDS_BETWEEN_UPLOADS = 60.0


class MetricsLog:
    """Writes each row to `metrics.jsonl` and TensorBoard's events.

    Objects in gs:// cannot be appended to. For gs:// both are written to a local folder, which is
    copied every minute and by `flush`.

    Args:
      folder: path, local or gs://.
      start: number of steps done; rows of later steps, from before an interruption, are dropped.
    """

    def __init__(self, folder, start=0):
        self.folder = folder
        self.local = storage.working_folder(folder)
        rows = _rows(os.path.join(folder, FILE))
        text = "".join(json.dumps(row) + "\n" for row in rows if row["step"] <= start)
        storage.write_text(os.path.join(self.local, FILE), text)
        self.file = open(os.path.join(self.local, FILE), "a", encoding="utf-8")  # noqa: SIM115
        self.writer = tf.summary.create_file_writer(self.local)
        self.uploaded_at = time.monotonic()

    def add(self, row):
        """Writes a row, a dict from `step` and metric names to numbers.

        TensorBoard shows metrics without a prefix such as `dev/` under `train/`.
        """
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        with self.writer.as_default(step=row["step"]):
            for name, value in row.items():
                if name != "step":
                    tf.summary.scalar(name if "/" in name else f"train/{name}", value)
        if time.monotonic() - self.uploaded_at > SECONDS_BETWEEN_UPLOADS:
            self.flush()

    def flush(self):
        """Writes all rows to the folder."""
        self.writer.flush()
        self.uploaded_at = time.monotonic()
        if self.local != self.folder:
            storage.copy_files(self.local, self.folder)

    def close(self):
        """Closes the files."""
        self.file.close()
        self.flush()
        self.writer.close()


def _rows(path):
    """Reads the valid rows of a file; a power cut may damage the last rows."""
    rows = []
    for line in storage.read_bytes(path).splitlines() if storage.exists(path) else []:
        try:
            rows.append(parse_json(line))
        except ValueError:
            logging.warning("%s: a damaged row is skipped: %.40r", path, line)
    return [row for row in rows if isinstance(row, dict) and type(row.get("step")) in (int, float)]
