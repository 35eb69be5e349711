"""Progress that people can see: on the terminal, in TensorBoard, in metrics.jsonl."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import tf_keras

from adapter_bert_tf.training.metrics_log import MetricsLog


def minutes(seconds: float) -> str:
    """`1:05` for 65 seconds."""
    whole, rest = divmod(round(seconds), 60)
    return f"{whole}:{rest:02d}"


class Seen:
    """Says every few seconds how many rows are done, at which rate, and how long the rest takes.

    What takes less is done without a line.

    Args:
      name: of the rows, for the line.
      total: number of rows.
      every_seconds: between two lines.
    """

    def __init__(self, name: str, total: int, every_seconds: float = 5.0) -> None:
        self.name, self.total, self.every_seconds = name, total, every_seconds
        self.done = 0
        self.began = self.shown_at = time.monotonic()

    def counted(self, rows: Any) -> Any:
        """The rows, which are done; those beyond the total only fill up a batch."""
        self.done = min(self.done + len(rows), self.total)
        now = time.monotonic()
        if now - self.shown_at >= self.every_seconds:
            self.shown_at = now
            rate = self.done / (now - self.began)
            left = minutes((self.total - self.done) / rate)
            print(
                f"{self.name}: {self.done:,} of {self.total:,}  {rate:.0f} rows/s  ETA {left}",
                flush=True,
            )
        return rows


class Progress(tf_keras.callbacks.Callback):
    """Reports loss, learning rate, examples/s and time left.

    Every `every_seconds` on the terminal (in one line that is written over, if it is a terminal),
    and every `every_steps` in TensorBoard and `metrics.jsonl`. Examples/s leave out the first call,
    which is mostly compilation, and like the seconds what is done while `paused`. A run that is
    taken up again drops the rows of steps that it repeats.

    Args:
      steps: number of training steps.
      batch_size: examples a step.
      schedule: function from step to learning rate.
      folder: where metrics.jsonl and TensorBoard's events go; None for neither.
      start: steps already done.

    Attributes:
      step: steps done.
      stopped_early: whether training ended before the last of `steps` because nothing got better.
      kept_step: the step whose weights the model has; that of the last unless others were kept.
    """

    # Losses stay tensors until they are shown: no wait for the device at every step.
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
        self.start, self.step, self.recorded = start, start, start
        self.stopped_early, self._kept_step = False, None
        self.mean_loss, self.mean_step = 0.0, start
        self.folder, self.log = folder, None
        self.examples_per_second = 0.0
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.paused_seconds = 0.0
        self.line_is_open = False

    @property
    def kept_step(self) -> int:
        """The step whose weights the model has."""
        return self.step if self._kept_step is None else self._kept_step

    @kept_step.setter
    def kept_step(self, step: int) -> None:
        self._kept_step = step

    def on_train_begin(self, logs=None):
        self.began = self.shown_at = time.monotonic()
        self.compiled: Any = None  # Step and time of the first call's end.
        self.cpu_began = time.process_time()
        if self.folder is not None:
            self.log = MetricsLog(self.folder, self.start)

    def on_train_batch_end(self, batch, logs=None):
        self.step = self.start + batch + 1
        now = time.monotonic()
        self.seconds = now - self.began
        self.cpu_seconds = time.process_time() - self.cpu_began
        self.compiled = self.compiled or (self.step, now)
        examples = (self.step - self.compiled[0]) * self.batch_size
        self.examples_per_second = examples / max(now - self.compiled[1], 1e-9)
        due = now - self.shown_at >= self.every_seconds or self.step == self.steps
        if not due and self.step // self.every_steps == self.recorded // self.every_steps:
            return
        self.recorded = self.step
        row = self._row(float(logs["loss"]))
        self.log_row(row)
        if due:
            self.shown_at = now
            self._show(row)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A context whose time does not count as training; only the time left allows for it."""
        wall, processor = time.monotonic(), time.process_time()
        yield
        gone = time.monotonic() - wall
        self.began += gone
        self.compiled = (self.compiled[0], self.compiled[1] + gone)
        self.cpu_began += time.process_time() - processor
        self.paused_seconds += gone

    def log_row(self, row: dict[str, float]) -> None:
        """Adds a row, with `step`, to metrics.jsonl and TensorBoard, if they are written."""
        if self.log is not None:
            self.log.add(row)

    def say(self, line: str) -> None:
        """Prints a line of its own."""
        print(f"\n{line}" if self.line_is_open else line, file=self.stream, flush=True)
        self.line_is_open = False

    def flush(self):
        """Sees to it that all rows are in the folder."""
        if self.log is not None:
            self.log.flush()

    def close(self):
        """Ends the log, if it was begun."""
        if self.log is not None:
            self.log.close()

    def _row(self, mean_loss):
        """Values to report; the loss is the mean since the last report, not since the start."""
        done, before = self.step - self.start, self.mean_step - self.start
        loss = (mean_loss * done - self.mean_loss * before) / max(done - before, 1)
        self.mean_loss, self.mean_step = mean_loss, self.step
        return {
            "step": self.step,
            "loss": loss,
            "learning_rate": float(self.schedule(self.step - 1)),
            "examples_per_second": self.examples_per_second,
        }

    def _show(self, row):
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
        return minutes(left)
