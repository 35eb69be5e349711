"""Training progress on the terminal, in TensorBoard and in metrics.jsonl."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.sanitize import parse_json

FILE = "metrics.jsonl"
SECONDS_BETWEEN_UPLOADS = 60.0

Batch = TypeVar("Batch", bound=Sized)


def format_minutes(seconds: float) -> str:
    """Formats 65 seconds as `1:05`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


class RowProgress:
    """Prints rows done, rows/s and time left every few seconds; `total` may be unknown."""

    def __init__(self, name: str, total: int | None = None, every_seconds: float = 5.0) -> None:
        self.name, self.total, self.every_seconds = name, total, every_seconds
        self.done = 0
        self.start = self.printed_at = time.monotonic()

    def add(self, rows: int, fraction: float | None = None) -> None:
        """Counts rows as done; without a total, `fraction` is the part of the work that is done."""
        self.done = self.done + rows if self.total is None else min(self.done + rows, self.total)
        now = time.monotonic()
        if now - self.printed_at < self.every_seconds:
            return
        self.printed_at, elapsed = now, now - self.start
        fraction = self.done / self.total if self.total else fraction
        left = format_minutes(elapsed * (1 - fraction) / fraction) if fraction else "?"
        of_total = f" of {self.total:,}" if self.total else " rows"
        rate = f"{self.done / elapsed:.0f} rows/s"
        print(f"{self.name}: {self.done:,}{of_total}  {rate}  ETA {left}", flush=True)

    def track(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yields the batches and counts their rows as done."""
        for batch in batches:
            self.add(len(batch))
            yield batch


class Progress(tf_keras.callbacks.Callback):
    """Reports loss, learning rate, examples/s and time left.

    Prints every `every_seconds` (on a terminal, one line that is overwritten), and writes to
    TensorBoard and `metrics.jsonl` in `folder`, if there is one, every `every_steps`. Examples/s
    exclude the first call, which is mostly compilation. Examples/s and seconds exclude time spent
    `paused`. A resumed run, with `start` steps done, drops the rows of the steps that it repeats.

    Attributes:
      step: steps done.
      stopped_early: whether training stopped early.
      skipped_steps: steps that float16 training skipped; None in another precision.
      weights_step: the step of the model's weights; the last step unless an earlier one was best.
    """

    # Losses stay tensors until they are printed, so that no step waits for the device.
    _supports_tf_logs = True

    def __init__(
        self,
        steps,
        batch_size,
        schedule,
        folder=None,
        start=0,
        every_seconds=5.0,
        every_steps=20,
        stream=None,
    ):
        super().__init__()
        self.steps, self.batch_size, self.schedule = steps, batch_size, schedule
        self.every_seconds, self.every_steps = every_seconds, every_steps
        self.stream = stream or sys.stdout
        self.start = self.step = self.weights_step = self.recorded_step = start
        self.stopped_early = False
        self.skipped_steps: int | None = None
        self.mean_loss, self.mean_step = 0.0, start
        self.folder, self.log = folder, None
        self.examples_per_second = self.seconds = self.cpu_seconds = self.paused_seconds = 0.0
        self.line_is_open = False

    def on_train_begin(self, logs=None):
        self.start_time = self.printed_at = time.monotonic()
        self.compiled: Any = None  # Step and time at the end of the first call.
        self.start_cpu_time = time.process_time()
        if self.folder is not None:
            self.log = MetricsLog(self.folder, self.start)

    def on_train_batch_end(self, batch, logs=None):
        self.step = self.weights_step = self.start + batch + 1
        now = time.monotonic()
        self.seconds = now - self.start_time
        self.cpu_seconds = time.process_time() - self.start_cpu_time
        self.compiled = self.compiled or (self.step, now)
        examples = (self.step - self.compiled[0]) * self.batch_size
        self.examples_per_second = examples / max(now - self.compiled[1], 1e-9)
        due = now - self.printed_at >= self.every_seconds or self.step == self.steps
        if not due and self.step // self.every_steps == self.recorded_step // self.every_steps:
            return
        self.recorded_step = self.step
        row = self._row(float(logs["loss"]))
        self.log_row(row)
        if due:
            self.printed_at = now
            self._print_row(row)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Returns a context whose time counts only for the estimate of the time left."""
        self._end_line()
        wall, processor = time.monotonic(), time.process_time()
        yield
        elapsed = time.monotonic() - wall
        self.start_time += elapsed
        self.compiled = (self.compiled[0], self.compiled[1] + elapsed)
        self.start_cpu_time += time.process_time() - processor
        self.paused_seconds += elapsed

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Returns a context whose time examples/s and the estimate of the time left exclude."""
        start = time.monotonic()
        yield
        if self.compiled is not None:  # Examples/s exclude the first call anyway.
            step, end = self.compiled
            self.compiled = step, end + time.monotonic() - start

    def log_row(self, row: dict[str, float]) -> None:
        """Adds a row, with `step`, to metrics.jsonl and TensorBoard, if there is a folder."""
        if self.log is not None:
            self.log.add(row)

    def print_line(self, line: str) -> None:
        """Prints a separate line."""
        self._end_line()
        print(line, file=self.stream, flush=True)

    def _end_line(self) -> None:
        """Ends the line that a terminal shows, because other lines follow it."""
        if self.line_is_open:
            print(file=self.stream, flush=True)
        self.line_is_open = False

    def flush(self):
        """Writes all rows to the folder."""
        if self.log is not None:
            self.log.flush()

    def close(self):
        """Closes the log, if it is open."""
        if self.log is not None:
            self.log.close()

    def _row(self, mean_loss):
        """Returns the values to report; the loss is the mean since the last report."""
        done, before = self.step - self.start, self.mean_step - self.start
        loss = (mean_loss * done - self.mean_loss * before) / max(done - before, 1)
        self.mean_loss, self.mean_step = mean_loss, self.step
        return {
            "step": self.step,
            "loss": loss,
            "learning_rate": float(self.schedule(self.step - 1)),
            "examples_per_second": self.examples_per_second,
        }

    def _print_row(self, row):
        line = (
            f"step {self.step}/{self.steps}  loss {row['loss']:.4f}  "
            f"lr {row['learning_rate']:.2e}  {row['examples_per_second']:.0f} examples/s  "
            f"ETA {self._time_left()}"
        )
        terminal = self.stream.isatty()
        self.line_is_open = terminal and self.step != self.steps
        print(
            f"\r{line}" if terminal else line,
            end="" if self.line_is_open else "\n",
            file=self.stream,
            flush=True,
        )

    def _time_left(self):
        if not self.examples_per_second:
            return "?"
        left = (self.steps - self.step) * self.batch_size / self.examples_per_second
        left *= 1 + self.paused_seconds / max(self.seconds, 1e-9)
        return format_minutes(left)


class MetricsLog:
    """Writes each row to `metrics.jsonl` and TensorBoard's events in a folder, local or gs://.

    Objects in gs:// cannot be appended to. For gs:// both are written to a local folder, which is
    copied every minute and by `flush`. Rows after step `start`, from before an interruption, are
    dropped.
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
        """Writes a row of `step` and metrics; TensorBoard shows `loss` as `train/loss`."""
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
