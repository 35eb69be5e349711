"""Progress that people can see: on the terminal, in TensorBoard, in metrics.jsonl."""

import json
import sys
import time

import tensorflow as tf
import tf_keras


class Progress(tf_keras.callbacks.Callback):
    """Reports loss, learning rate, examples/s and time left.

    Every `every_seconds` on the terminal (in one line that is written over, if it is a terminal),
    and every `every_steps` in TensorBoard and `metrics.jsonl`. Examples/s leave out the first step,
    which is mostly compilation.

    Args:
      steps: number of training steps.
      batch_size: examples a step.
      schedule: function from step to learning rate.
      folder: where metrics.jsonl and TensorBoard's events go; None for neither.
      start: steps already done.
    """

    # Losses stay tensors until they are shown: no wait for the device at every step.
    _supports_tf_logs = True

    def __init__(self, steps, batch_size, schedule, folder=None, start=0, every_seconds=5.0,
                 every_steps=20, stream=None):
        super().__init__()
        self.steps, self.batch_size, self.schedule = steps, batch_size, schedule
        self.every_seconds, self.every_steps = every_seconds, every_steps
        self.stream = stream or sys.stdout
        self.start, self.step, self.shown_step = start, start, start
        self.mean_loss, self.mean_step = 0.0, start
        self.folder = folder
        self.examples_per_second = 0.0
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    def on_train_begin(self, logs=None):
        self.began = self.shown_at = self.compiled = time.monotonic()
        self.cpu_began = time.process_time()
        self.writer = self.log = None
        if self.folder is not None:
            self.writer = tf.summary.create_file_writer(self.folder)
            self.log = tf.io.gfile.GFile(f"{self.folder}/metrics.jsonl", "a")

    def on_train_batch_end(self, batch, logs=None):
        self.step = self.start + batch + 1
        now = time.monotonic()
        self.seconds = now - self.began
        self.cpu_seconds = time.process_time() - self.cpu_began
        if batch == 0:
            self.compiled = now
        examples = batch * self.batch_size
        self.examples_per_second = examples / max(now - self.compiled, 1e-9)
        due = now - self.shown_at >= self.every_seconds or self.step == self.steps
        if not due and self.step % self.every_steps:
            return
        row = self._row(float(logs["loss"]))
        if self.folder is not None:
            self._record(row)
        if due:
            self.shown_at = now
            self._show(row)

    def on_train_end(self, logs=None):
        if self.folder is not None:
            self.writer.close()
            self.log.close()

    def _row(self, mean_loss):
        """Values to report; the loss is the mean since the last report, not since the start."""
        done, before = self.step - self.start, self.mean_step - self.start
        loss = (mean_loss * done - self.mean_loss * before) / max(done - before, 1)
        self.mean_loss, self.mean_step = mean_loss, self.step
        return {
            "step": self.step, "loss": loss,
            "learning_rate": float(self.schedule(self.step - 1)),
            "examples_per_second": self.examples_per_second,
        }

    def _record(self, row):
        self.log.write(json.dumps(row) + "\n")
        self.log.flush()
        with self.writer.as_default(step=self.step):
            for name, value in row.items():
                if name != "step":
                    tf.summary.scalar(f"train/{name}", value)

    def _show(self, row):
        line = (f"step {self.step}/{self.steps}  loss {row['loss']:.4f}  "
                f"lr {row['learning_rate']:.2e}  {row['examples_per_second']:.0f} examples/s  "
                f"ETA {self._time_left()}")
        terminal = self.stream.isatty()
        last = self.step == self.steps
        print(f"\r{line}" if terminal else line, end="" if terminal and not last else "\n",
              file=self.stream, flush=True)

    def _time_left(self):
        if not self.examples_per_second:
            return "?"
        left = (self.steps - self.step) * self.batch_size / self.examples_per_second
        minutes, seconds = divmod(round(left), 60)
        return f"{minutes}:{seconds:02d}"
