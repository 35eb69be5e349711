#!/bin/bash
# Orbax: a metric that is not a number counts as the best, and the checkpoints that were really the best are deleted.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   orbax-checkpoint 0.12.8; losses of the checkpoints that are left
#   diverges: [0.9, 0.5, 0.7, nan, nan, nan]
#     max_to_keep=1: [nan], best nan; with inf for NaN [0.5], best 0.5
#     max_to_keep=2: [nan, nan], best nan; with inf for NaN [0.5, 0.7], best 0.5
#   one step without a value: [0.9, 0.5, nan, 0.7, 0.8, 0.6]
#     max_to_keep=1: [0.6], best 0.6; with inf for NaN [0.5], best 0.5
#     max_to_keep=2: [0.7, 0.6], best 0.6; with inf for NaN [0.5, 0.6], best 0.5
# Expected: with best_fn, "the retained checkpoints will be kept based on their quality". Keras, Ray and transformers
#   take a NaN for no improvement.
# Seen: `BestN.should_preserve` (preservation_policy.py) and the manager's `_sort_checkpoints_by_metrics` call sorted()
#   with the metrics as keys. Nothing is less than NaN or greater, so a NaN stays at its place, which is the last, hence
#   best, one for the newest checkpoint, and hides what lies on the other side of it. With max_to_keep=1 each NaN
#   replaces all before; once one is kept, later checkpoints push out better ones. There is no message.
# Affects trainings that diverge, where the best checkpoint is what is left, and metrics without a value for one step,
#   such as a mean of no examples. float("inf") instead of NaN helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile orbax-checkpoint==0.12.8 jax==0.10.2 2> /dev/null
export JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import orbax.checkpoint as ocp

logging.disable()
NAN, INF = float("nan"), float("inf")
RUNS = {
    "diverges": [0.9, 0.5, 0.7, NAN, NAN, NAN],
    "one step without a value": [0.9, 0.5, NAN, 0.7, 0.8, 0.6],
}


def kept(losses, number):
    """The losses of the checkpoints that are left, and the one of what best_step says."""
    options = ocp.CheckpointManagerOptions(
        max_to_keep=number, best_fn=lambda metrics: metrics["loss"], best_mode="min", enable_async_checkpointing=False
    )
    with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(folder, options=options) as manager:
        for step, loss in enumerate(losses):
            manager.save(step, args=ocp.args.StandardSave({"weight": np.full(2, step)}), metrics={"loss": loss})
        return [losses[step] for step in manager.all_steps()], losses[manager.best_step()]


print(f"orbax-checkpoint {version('orbax-checkpoint')}; losses of the checkpoints that are left")
failed = False
for title, losses in RUNS.items():
    print(f"{title}: {losses}")
    for number in 1, 2:
        found, best = kept(losses, number)
        other, right = kept([INF if loss != loss else loss for loss in losses], number)
        print(f"  max_to_keep={number}: {found}, best {best}; with inf for NaN {other}, best {right}")
        failed |= right != 0.5 or 0.5 in found
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
