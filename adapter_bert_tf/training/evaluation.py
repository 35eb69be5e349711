"""Evaluation while training: every so many steps, with the best weights kept and an early end."""

import dataclasses
import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import safetensors.numpy
import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.training.progress import Progress

FILE = "best.json"  # Says which step was the best so far; beside the checkpoints.
WEIGHTS = re.compile(r"best-(\d+)\.safetensors")
Results = dict[str, float]
Variables = dict[str, tf.Variable]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What to evaluate while training, and what follows from it.

    Args:
      every: steps between evaluations; None for none but the one that `keep="best"` asks for.
      evaluate: function that returns the results by name, the same on every worker. It must leave
        the variables and the training's own metrics alone, as `inference.predict` does.
      score: function from the results to the number to choose by; more is better, NaN is never
        chosen, and of equal ones the first is.
      keep: the weights to end with: of the last step, or of the best evaluation, which then comes
        after the last step as well.
      patience: training ends after so many evaluations without a better one; None for never.

    Raises:
      InputError: for a value that makes no sense.
    """

    every: int | None
    evaluate: Callable[[], Results]
    score: Callable[[Results], float]
    keep: Literal["last", "best"] = "last"
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.keep not in ("last", "best"):
            raise InputError(f"keep must be 'last' or 'best'. Received: {self.keep!r}")
        for name, value in (("every", self.every), ("patience", self.patience)):
            if value is not None and value < 1:
                raise InputError(f"{name} must be 1 or more. Received: {value}")
        if self.patience is not None and self.every is None:
            raise InputError("patience counts evaluations, so it needs every. Received: None")

    def longest_call(self, steps: int) -> int:
        """At most so many `steps` in one call of the compiled loop: nothing is evaluated in it."""
        return min(steps, self.every or steps)

    def is_due(self, before: int, step: int, steps: int) -> bool:
        """Whether to evaluate at the end of a call from step `before` to `step` of `steps`."""
        if self.every and step // self.every > before // self.every:
            return True
        return self.keep == "best" and step == steps

    def is_over(self, best_step: int, step: int) -> bool:
        """Whether patience is at an end, with the best at `best_step`, 0 if there is none."""
        if self.patience is None or self.every is None:
            return False
        return step // self.every - best_step // self.every >= self.patience


@dataclasses.dataclass(frozen=True)
class Best:
    """The best evaluation so far.

    Args:
      step: after which it was.
      score: of its results.
      results: dict from name to number.
      weights: dict from common name to array, of all trained variables; None if they are not kept.
    """

    step: int
    score: float
    results: Results
    weights: dict[str, np.ndarray] | None = None

    def write(self, folder: str) -> None:
        """Writes `best-STEP.safetensors`, if there are weights, and then `best.json`.

        The latter makes the former count, and replaces the best before it, whose weights go last:
        cut short at any point, the folder holds one of the two.
        """
        record: dict[str, Any] = {"step": self.step, "score": self.score, "results": self.results}
        if self.weights is not None:
            content = safetensors.numpy.save(self.weights)
            storage.write_bytes(_weights_path(folder, self.step), content)
            record["sha256"] = hashlib.sha256(content).hexdigest()
        storage.write_text(os.path.join(folder, FILE), json.dumps(record, indent=2) + "\n")
        _remove_weights(folder, but_of=self.step)

    @classmethod
    def read(cls, folder: str, start: int, trained: Variables | None) -> "Best | None":
        """The best of a run that goes on from step `start`; None if there is none.

        One of a later step, from before an interruption, counts as well: that step is evaluated
        again and gives the same, and what was the best until then is below it.

        Args:
          folder: of the checkpoints.
          start: number of steps done.
          trained: dict from common name to variable, of the weights to read; None for none.

        Raises:
          InputError: when it is damaged and will not be found again.
        """
        path = os.path.join(folder, FILE)
        if not storage.exists(path):
            return None
        step = 0
        try:
            record = json.loads(storage.read_text(path))
            step, score = int(record["step"]), float(record["score"])
            weights = None if trained is None else _read_weights(folder, record, trained)
            return cls(step, score, dict(record["results"]), weights)
        except (ValueError, KeyError, TypeError, tf.errors.NotFoundError) as error:
            if step > start:
                logging.warning("%s is damaged, and will be found again: %s", path, error)
                return None
            raise InputError(
                f"{path}, or the weights that it names, are damaged: {error!r}. They cannot be "
                "found again from the latest checkpoint: start the training from the beginning."
            ) from error

    @staticmethod
    def remove(folder: str) -> None:
        """Removes what an earlier run left."""
        if storage.exists(os.path.join(folder, FILE)):
            storage.remove(os.path.join(folder, FILE))
        _remove_weights(folder)


def _weights_path(folder, step):
    return os.path.join(folder, f"best-{step}.safetensors")


def _remove_weights(folder, but_of=None):
    for name in storage.listdir(folder) if storage.isdir(folder) else []:
        found = WEIGHTS.fullmatch(name)
        if found and int(found[1]) != but_of:
            storage.remove(os.path.join(folder, name))


def _read_weights(folder, record, trained):
    """Arrays by name, of the names and shapes of the variables `trained`. Raises `ValueError`."""
    content = storage.read_bytes(_weights_path(folder, record["step"]))
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        raise ValueError("the digest of the weights is another")
    weights = safetensors.numpy.load(content)
    ours = {name: tuple(variable.shape) for name, variable in trained.items()}
    if {name: array.shape for name, array in weights.items()} != ours:
        raise ValueError("the weights are of another model")
    return weights


class Evaluations(tf_keras.callbacks.Callback):
    """Evaluates where an `Evaluation` says so, on all workers alike; the first one writes.

    Must come before the callback that saves checkpoints: a checkpoint of a step says that the step
    was evaluated, so that a run which goes on from there need not ask.

    Args:
      evaluation: `Evaluation`.
      trained: dict from common name to variable.
      progress: `Progress`, which prints and logs.
      folder: of the checkpoints, where the best is stored; None to hold it in memory alone.
      writes: whether this process writes files.

    Attributes:
      best: `Best`; None so far.
    """

    _supports_tf_logs = True

    def __init__(
        self,
        evaluation: Evaluation,
        trained: Variables,
        progress: Progress,
        folder: str | None = None,
        writes: bool = True,
    ) -> None:
        super().__init__()
        self.evaluation, self.trained, self.progress = evaluation, trained, progress
        self.folder, self.writes = folder, writes
        self.step = progress.start
        self.best: Best | None = self._found_before()

    def _found_before(self):
        if self.folder is None:
            return None
        if self.step:
            return Best.read(self.folder, self.step, self._kept())
        if self.writes:
            Best.remove(self.folder)
        return None

    def _kept(self):
        """The variables to store with the best; None for none."""
        return self.trained if self.evaluation.keep == "best" else None

    @property
    def is_over(self) -> bool:
        """Whether training is to end at this step for want of a better evaluation."""
        return self.evaluation.is_over(self.best.step if self.best else 0, self.step)

    def on_train_batch_end(self, batch, logs=None):
        before, self.step = self.step, self.progress.start + batch + 1
        if not self.evaluation.is_due(before, self.step, self.progress.steps):
            return
        if not math.isfinite(float(logs["loss"])):  # Then `fit` ends by itself.
            return
        with self.progress.paused():
            results = {name: float(x) for name, x in self.evaluation.evaluate().items()}
            self._note(results)
        if self.is_over:
            self.model.stop_training = True

    def _note(self, results):
        self.progress.log_row({"step": self.step} | {f"dev/{n}": x for n, x in results.items()})
        score = float(self.evaluation.score(results))
        if not math.isnan(score) and (self.best is None or score > self.best.score):
            self._keep(score, results)
        shown = "  ".join(f"{name} {value:.4f}" for name, value in results.items())
        is_best = self.best is not None and self.best.step == self.step
        self.progress.say(
            f"dev at step {self.step}/{self.progress.steps}  {shown}"
            + ("  (best so far)" if is_best else "")
        )

    def _keep(self, score, results):
        variables = self._kept()
        weights = variables and {name: v.numpy() for name, v in variables.items()}
        self.best = Best(self.step, score, results, weights)
        if self.folder is not None and self.writes:
            self.best.write(self.folder)

    def finish(self) -> None:
        """Gives the model the weights to end with, and tells `progress` which they are.

        To be called in the scope of the model's strategy.
        """
        progress = self.progress
        progress.stopped_early = self.is_over and self.step < progress.steps
        if progress.stopped_early:
            progress.say(
                f"Training ends at step {self.step}/{progress.steps}: no better evaluation in "
                f"{self.evaluation.patience}."
            )
        if self.evaluation.keep == "best":
            self._assign_best()

    def _assign_best(self):
        if self.best is None or self.best.weights is None:
            logging.warning("No evaluation had a score, so the last weights are kept.")
            return
        for name, value in self.best.weights.items():
            self.trained[name].assign(value)
        self.progress.kept_step = self.best.step
        self.progress.say(f"The weights are those of step {self.best.step}, the best on dev.")
