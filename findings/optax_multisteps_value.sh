#!/bin/bash
# optax: MultiSteps adds up gradients, and hands its optimizer the loss of the last small batch alone.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   optax 0.2.8, jax 0.10.2; a weight of 1 after one step, with losses 9 and 1 of half a batch
#   sgd: whole batch 0.5, halves 0.5, halves the other way round 0.5
#   polyak_sgd: whole batch 0.5, halves 0.9, halves the other way round 0.1
#   momo: whole batch 0.5, halves 0.9, halves the other way round 0.1
#   reduce_on_plateau after 8 steps with a mean loss that falls: factor 1.0, in MultiSteps 0.125
# Expected: small batches of one size, whose gradients are averaged, make the step of the whole batch, in any order.
# Seen: `MultiSteps.update` (transforms/_accumulation.py) averages the gradients, and passes each `value` on as it is.
#   The optimizer's state is kept in the last call of a round alone, so that the losses before it count for nothing:
#   polyak_sgd and momo divide the loss of the last small batch by the gradient of all. There is no message.
# Affects optimizers that read the loss, with accumulated gradients: their rate follows one small batch. The mean of the
#   losses so far, given as value in each call, is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile optax==0.2.8 jax==0.10.2 2> /dev/null
export JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import jax.numpy as jnp
import optax
from optax.contrib import momo, reduce_on_plateau

HALVES = (9.0, 1.0)
STEPS = 8
SGD = optax.with_extra_args_support(optax.sgd(0.05))


def step(optimizer, batches):
    """A weight of 1 after one pass; the loss of a batch is its number times the square of the weight."""
    weight = jnp.ones(1)
    state = optimizer.init(weight)
    for number in batches:
        value, gradient = number * (weight**2).sum(), 2 * number * weight
        updates, state = optimizer.update(gradient, state, weight, value=value)
        weight = optax.apply_updates(weight, updates)
    return round(float(weight[0]), 2)


def plateau(accumulated):
    """The factor of the rate after losses of the first half that fall, and of the second one that do not."""
    optimizer = reduce_on_plateau(factor=0.5, patience=2)
    if accumulated:
        optimizer = optax.MultiSteps(optimizer, 2)
    weight = jnp.ones(1)
    state = optimizer.init(weight)
    for number in range(STEPS):
        values = 20.0 - number, 1.0
        for value in values if accumulated else [sum(values) / 2]:
            _, state = optimizer.update(weight, state, weight, value=jnp.float32(value))
    return float((state.inner_opt_state if accumulated else state).scale)


print(f"optax {version('optax')}, jax {version('jax')};", end=" ")
print("a weight of 1 after one step, with losses 9 and 1 of half a batch")
whole = [sum(HALVES) / 2]
results = []
for title, optimizer in {"sgd": SGD, "polyak_sgd": optax.polyak_sgd(), "momo": momo()}.items():
    halves = [step(optax.MultiSteps(optimizer, 2), batches) for batches in (HALVES, HALVES[::-1])]
    results.append([step(optimizer, whole), *halves])
    print("{}: whole batch {}, halves {}, halves the other way round {}".format(title, *results[-1]))
factors = plateau(False), plateau(True)
print(f"reduce_on_plateau after {STEPS} steps with a mean loss that falls:", end=" ")
print(f"factor {factors[0]}, in MultiSteps {factors[1]}")
sys.exit(results != [[0.5, 0.5, 0.5], [0.5, 0.9, 0.1], [0.5, 0.9, 0.1]] or factors[0] != 1 or factors[1] == 1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
