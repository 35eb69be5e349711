"""Asynchronous successive halving (ASHA; Li et al. 2020, section 3.2): weak runs stop early.

A run that reaches a rung goes on if it is among the best there so far; the paper pauses it and may
promote it later, Ray Tune and Syne Tune stop it, as here. The results are in the folders of the
runs, which all hosts see, so decisions need no messages and survive interruptions. Optuna's pruner
has the same rule, but keeps its results in a database.
"""

import math
import os
from collections.abc import Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.output.records import read_record, write_record
from adapter_bert_tf.run.output_contents import RUNGS
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.training.evaluation import Rungs

FACTOR = 3  # At each rung one of so many runs goes on: the paper's eta.
SHARES = (1 / 9, 1 / 3)  # Of the steps. The learning rate rises for a tenth of them by default.


def goes_on(score: float, others: Sequence[float]) -> bool:
    """Whether a run is among the best at a rung; while there are few, every run with a score is.

    Args:
      score: of the run; higher is better, NaN is the lowest.
      others: scores of the runs that reached the rung earlier.
    """
    if math.isnan(score):
        return False
    ranked = sorted([score, *others], reverse=True)
    promoted = len(ranked) // FACTOR
    return promoted == 0 or score >= ranked[promoted - 1]


def rungs_of(plan: Plan, sweep: str) -> Rungs:
    """Returns where the run of a plan is compared with the other runs of a sweep.

    Args:
      plan: of the run, whose folder is next to those of the other runs.
      sweep: digest that identifies the sweep.
    """
    folder, run_id = plan.output.folder, plan.folder.run.run_id
    path = os.path.join(folder, RUNGS)

    def decide(rung: int, step: int, score: float) -> bool:
        known = _entries(path, sweep, run_id)
        if rung in known:  # From before an interruption.
            return bool(known[rung]["goes_on"])
        decision = goes_on(score, _scores_of_others(folder, sweep, rung))
        finite = None if math.isnan(score) else score
        known[rung] = {"rung": rung, "step": step, "score": finite, "goes_on": decision}
        write_record(path, {"sweep": sweep, "run": run_id, "rungs": [*known.values()]})
        return decision

    return Rungs(SHARES, decide)


def stopped_row(folder: str, sweep: str, run_id: str) -> dict[str, Any] | None:
    """Returns the row of a run that was stopped at a rung; None for another run."""
    entries = _entries(os.path.join(folder, RUNGS), sweep, run_id)
    stopped = [entry for entry in entries.values() if not entry["goes_on"]]
    return row_of_stopped(stopped[0]["step"], stopped[0]["score"]) if stopped else None


def row_of_stopped(step: int, score: float | None) -> dict[str, Any]:
    """Returns the row of a run that was stopped at a step, with its score there."""
    finite = None if score is None or math.isnan(score) else score
    return {"status": "stopped", "results": {}, "stopped_at_step": step, "stopped_score": finite}


def _entries(path: str, sweep: str, run_id: str | None = None) -> dict[int, dict[str, Any]]:
    """Returns what a run recorded, by rung; nothing of another sweep, or than `run_id`."""
    record = read_record(path) or {}
    if record.get("sweep") != sweep or run_id not in (None, record.get("run")):
        return {}
    return {entry["rung"]: entry for entry in record["rungs"]}


def _scores_of_others(folder: str, sweep: str, rung: int) -> list[float]:
    parent, own = os.path.split(folder.rstrip("/"))
    names = sorted(name.rstrip("/") for name in storage.listdir(parent))
    others = [_entries(os.path.join(parent, n, RUNGS), sweep) for n in names if n != own]
    scores = [entries[rung]["score"] for entries in others if rung in entries]
    return [-math.inf if score is None else score for score in scores]
