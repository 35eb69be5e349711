#!/bin/bash
# optax: one NaN in a gradient stays in MultiSteps for ever, also inside of apply_if_finite and zero_nans.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   optax 0.2.8, jax 0.10.2; two weights, 100 gradients of 1, of which one is NaN for the first weight
#   steps from 50 to 100 that change the weights, of the number wanted
#     apply_if_finite(sgd): 50, 50 of 50
#     MultiSteps(apply_if_finite(sgd), 1): 0, 0 of 50
#     MultiSteps(apply_if_finite(sgd), 5): 0, 0 of 10
#     MultiSteps(zero_nans, sgd, 5): 0, 10 of 10
#     chain(apply_every(5), zero_nans, sgd): 0, 10 of 10
#     MultiSteps(apply_if_finite(sgd, 3), 5): NaN, 10 of 10
#     apply_if_finite(MultiSteps(sgd, 5)): 10, 10 of 10
#     chain(zero_nans, MultiSteps(sgd, 5)): 10, 10 of 10
#     MultiSteps(sgd, 5, skip_not_finite): 10, 10 of 10
# Expected: once an update is made, "accumulated gradients are then set back to zero", so that what rejects the update
#   with a NaN costs one update.
# Seen: `MultiSteps.update` and `apply_every` (transforms/_accumulation.py) do not set them to zero but multiply them by
#   zero, and zero times NaN, or infinity, is NaN. So each later sum is NaN. apply_if_finite rejects every update from
#   then on, and after max_consecutive_errors of them lets the NaN into the weights. zero_nans hides it: weights with
#   one NaN are frozen and the others go on. There is no message, and the loss stays finite.
# Affects long trainings with accumulated gradients where a rare overflow is meant to be skipped. MultiSteps inside of
#   apply_if_finite, zero_nans before it, or its own should_skip_update_fn are right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile optax==0.2.8 jax==0.10.2 2> /dev/null
export JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import jax
import numpy as np
import optax

STEPS, FROM, BAD = 100, 50, 12
SKIP = {"should_skip_update_fn": optax.skip_not_finite}


def finite(optimizer, limit=STEPS):
    return optax.apply_if_finite(optimizer, limit)


SGD = optax.sgd(0.1)
CASES = [
    ("apply_if_finite(sgd)", finite(SGD), 1, [50, 50]),
    ("MultiSteps(apply_if_finite(sgd), 1)", optax.MultiSteps(finite(SGD), 1), 1, [0, 0]),
    ("MultiSteps(apply_if_finite(sgd), 5)", optax.MultiSteps(finite(SGD), 5), 5, [0, 0]),
    ("MultiSteps(zero_nans, sgd, 5)", optax.MultiSteps(optax.chain(optax.zero_nans(), SGD), 5), 5, [0, 10]),
    ("chain(apply_every(5), zero_nans, sgd)", optax.chain(optax.apply_every(5), optax.zero_nans(), SGD), 5, [0, 10]),
    ("MultiSteps(apply_if_finite(sgd, 3), 5)", optax.MultiSteps(finite(SGD, 3), 5), 5, ["NaN", 10]),
    ("apply_if_finite(MultiSteps(sgd, 5))", finite(optax.MultiSteps(SGD, 5)), 5, [10, 10]),
    ("chain(zero_nans, MultiSteps(sgd, 5))", optax.chain(optax.zero_nans(), optax.MultiSteps(SGD, 5)), 5, [10, 10]),
    ("MultiSteps(sgd, 5, skip_not_finite)", optax.MultiSteps(SGD, 5, **SKIP), 5, [10, 10]),
]


def changes(optimizer):
    """For each weight, the number of steps after the first half that change it."""
    weights = np.ones(2, "float32")
    state, update, seen = optimizer.init(weights), jax.jit(optimizer.update), []
    for step in range(STEPS):
        gradient = np.array([float("nan") if step == BAD else 1, 1], "float32")
        updates, state = update(gradient, state, weights)
        weights = np.asarray(optax.apply_updates(weights, updates))
        seen.append(weights)
    seen = np.stack(seen[FROM - 1 :])
    return ["NaN" if np.isnan(one).any() else int((np.abs(np.diff(one)) > 1e-4).sum()) for one in seen.T]


print(f"optax {version('optax')}, jax {version('jax')};", end=" ")
print(f"two weights, {STEPS} gradients of 1, of which one is NaN for the first weight")
print(f"steps from {FROM} to {STEPS} that change the weights, of the number wanted")
failed = False
for title, optimizer, every, known in CASES:
    found = changes(optimizer)
    print(f"  {title}: {found[0]}, {found[1]} of {(STEPS - FROM) // every}")
    failed |= found != known
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
