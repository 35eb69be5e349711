"""Evaluation while training: every so many steps, with the best weights kept and an early end."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

import tf_keras
from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.training.best import Best, Results, Variables
from adapter_bert_tf.training.progress import Progress


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

    def _found_before(self) -> Best | None:
        """The best of the steps already done; without any, there is none to believe in."""
        if self.folder is None:
            return None
        best = Best.read(self.folder, self.step, self._kept()) if self.step else None
        if self.writes:
            Best.clean(self.folder, best)
        return best

    def _kept(self) -> Variables | None:
        """The variables to store with the best; None for none."""
        return self.trained if self.evaluation.keep == "best" else None

    @property
    def is_over(self) -> bool:
        """Whether training is to end at this step for want of a better evaluation."""
        return self.evaluation.is_over(self.best.step if self.best else 0, self.step)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any]) -> None:
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

    def _note(self, results: Results) -> None:
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

    def _keep(self, score: float, results: Results) -> None:
        variables, weights = self._kept(), None
        if variables is not None:
            weights = {name: variable.numpy() for name, variable in variables.items()}
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

    def _assign_best(self) -> None:
        if self.best is None or self.best.weights is None:
            logging.warning("No evaluation had a score, so the last weights are kept.")
            return
        for name, value in self.best.weights.items():
            self.trained[name].assign(value)
        self.progress.kept_step = self.best.step
        self.progress.say(f"The weights are those of step {self.best.step}, the best on dev.")
