"""Evaluation during training, with best weights and early stopping."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

import tf_keras
from absl import logging

from adapter_bert_tf.errors import InputError, Missing, Pruned
from adapter_bert_tf.training.best import BestEvaluation, Results, Variables
from adapter_bert_tf.training.progress import Progress


@dataclasses.dataclass(frozen=True)
class Rungs:
    """Steps at which a search may stop a training.

    Args:
      shares: proportions of all steps, ascending, between 0 and 1.
      goes_on: function from the number of a rung (0 for the first), its step and the score there to
        whether the training goes on.
    """

    shares: tuple[float, ...]
    goes_on: Callable[[int, int, float], bool]

    def reached(self, before: int, step: int, steps: int) -> int | None:
        """The number of the last rung after step `before` and until `step`; None without one."""
        at = [math.ceil(share * steps) for share in self.shares]
        numbers = [i for i, rung in enumerate(at) if before < rung <= step < steps]
        return numbers[-1] if numbers else None


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """When to evaluate during training, and how to use the results. Raises `InputError`.

    Args:
      every: steps between evaluations; None for no regular evaluations.
      evaluate: function that returns results by name, the same on every worker. It must not change
        the variables or the metrics of the training, as `inference.predict` does not.
      score: function from results to a number; higher is better, NaN is never the best, and the
        first of equal scores is the best.
      keep: final weights: `last` for the last step, `best` for the best evaluation. `best` adds an
        evaluation after the last step.
      patience: number of evaluations without a better score before training stops; None to never
        stop early.
      rungs: where a search compares the training with others; they do not count for `keep` and
        `patience`.
    """

    every: int | None
    evaluate: Callable[[], Results]
    score: Callable[[Results], float]
    keep: Literal["last", "best"] = "last"
    patience: int | None = None
    rungs: Rungs | None = None

    def __post_init__(self) -> None:
        if self.keep not in ("last", "best"):
            raise InputError(f"keep must be 'last' or 'best'. Received: {self.keep!r}")
        for name, value in (("every", self.every), ("patience", self.patience)):
            if value is not None and value < 1:
                raise InputError(f"{name} must be 1 or more. Received: {value}")
        if self.patience is not None and self.every is None:
            raise Missing("patience counts evaluations, so it needs every. Received: None")

    def is_due(self, before: int, step: int, steps: int) -> bool:
        """Whether to evaluate after a call that ran from step `before` to `step` of `steps`."""
        if self.every and step // self.every > before // self.every:
            return True
        return self.keep == "best" and step == steps

    def should_stop(self, best_step: int, step: int) -> bool:
        """Whether to stop early, with the best evaluation at `best_step` (0 without one)."""
        if self.patience is None or self.every is None:
            return False
        return step // self.every - best_step // self.every >= self.patience


class EvaluationCallback(tf_keras.callbacks.Callback):
    """Evaluates on all workers when an `Evaluation` is due; the chief (`writes`) writes files.

    Must come before the callback that saves checkpoints: a resumed run takes the step of its
    checkpoint as evaluated. The best evaluation is stored in `folder`, that of the checkpoints;
    None keeps it in memory, as `best`.
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
        self.best: BestEvaluation | None = self._read_best()

    def _read_best(self) -> BestEvaluation | None:
        """Reads the best evaluation of the steps already done; a new run ignores such files."""
        if self.folder is None:
            return None
        variables = self.trained if self.evaluation.keep == "best" else None
        best = BestEvaluation.read(self.folder, self.step, variables) if self.step else None
        if self.writes:
            BestEvaluation.clean(self.folder, best)
        return best

    @property
    def should_stop(self) -> bool:
        """Whether training stops early at this step."""
        return self.evaluation.should_stop(self.best.step if self.best else 0, self.step)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any]) -> None:
        before, self.step = self.step, self.progress.start + batch + 1
        steps, rungs = self.progress.steps, self.evaluation.rungs
        is_due = self.evaluation.is_due(before, self.step, steps)
        rung = rungs.reached(before, self.step, steps) if rungs else None
        if not is_due and rung is None:
            return
        if not math.isfinite(float(logs["loss"])):  # Then `fit` ends by itself.
            return
        with self.progress.paused():
            results = {name: float(x) for name, x in self.evaluation.evaluate().items()}
            score = float(self.evaluation.score(results))
            if is_due:
                self._record(results, score)
            if rungs and rung is not None:
                self._compare(rungs, rung, results, score)
        if self.should_stop:
            self.model.stop_training = True

    def _compare(self, rungs: Rungs, rung: int, results: Results, score: float) -> None:
        """Raises `Pruned` if the training does not go on at a rung."""
        goes_on = rungs.goes_on(rung, self.step, score)
        verdict = "goes on" if goes_on else "stops"
        self._print(results, f"  (rung {rung + 1} of {len(rungs.shares)}: {verdict})")
        if not goes_on:
            raise Pruned(self.step, self.progress.steps, score)

    def _print(self, results: Results, remark: str) -> None:
        metrics = "  ".join(f"{name} {value:.4f}" for name, value in results.items())
        self.progress.print_line(
            f"dev at step {self.step}/{self.progress.steps}  {metrics}{remark}"
        )

    def _record(self, results: Results, score: float) -> None:
        self.progress.log_row({"step": self.step} | {f"dev/{n}": x for n, x in results.items()})
        if not math.isnan(score) and (self.best is None or score > self.best.score):
            weights = None
            if self.evaluation.keep == "best":
                weights = {name: variable.numpy() for name, variable in self.trained.items()}
            self.best = BestEvaluation(self.step, score, results, weights)
            if self.folder is not None and self.writes:
                self.best.write(self.folder)
        is_best = self.best is not None and self.best.step == self.step
        self._print(results, "  (best so far)" if is_best else "")

    def finish(self) -> None:
        """Assigns the final weights in the scope of the model's strategy; completes `progress`."""
        progress = self.progress
        progress.stopped_early = self.should_stop and self.step < progress.steps
        if progress.stopped_early:
            progress.print_line(
                f"Training ends at step {self.step}/{progress.steps}: no better evaluation in "
                f"{self.evaluation.patience}."
            )
        if self.evaluation.keep != "best":
            return
        if self.best is None or self.best.weights is None:
            logging.warning("No evaluation had a score: the weights of the last step are kept.")
            return
        for name, value in self.best.weights.items():
            self.trained[name].assign(value)
        step = progress.weights_step = self.best.step
        progress.print_line(f"The weights are those of step {step}, the best on dev.")
