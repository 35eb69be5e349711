#!/bin/bash
# optax: one parameter in bfloat16, and schedule_free averages the last 256 steps instead of all, for every parameter.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   optax 0.2.8, jax 0.10.2; the average of 1 to 1500, which a weight in float32 goes through
#   all in float32: 750.5; another parameter in bfloat16: 1245.5
#   weights counted 1500, 256; b1 of the state 0.9000, 0.8984
# Expected: with a constant rate, the weights for evaluation are the mean of all steps, for weights in float32 at least.
# Seen: `schedule_free` (contrib/_schedule_free.py) keeps the sum of the weights of all steps, the largest rate and b1
#   in the lowest type of any parameter. In bfloat16 256 + 1 is 256, so the sum stands still after 256 steps, and from
#   then on each step counts 1/257: an average that forgets, whatever the length of the training. There is no message.
#   b1 is rounded in the state, from which schedule_free_eval_params takes it, and not in the steps themselves.
# Affects schedule_free_adamw and _sgd for models in bfloat16, and for those with anything in it, such as embeddings or
#   a base under a LoRA in float32: the noise of the last steps stays in, as with a short EMA. An optimizer that is
#   given a copy of all parameters in float32 is right.
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
import jax.numpy as jnp
import optax
from optax.contrib import schedule_free, schedule_free_eval_params

STEPS = 1500


def average(dtype):
    """The average of a weight in float32 that goes through 1, 2, ... STEPS, and the state of the optimizer."""
    parameters = {"weight": jnp.zeros(1), "other": jnp.zeros(1, dtype)}
    gradients = {"weight": jnp.full(1, -1.0), "other": jnp.zeros(1, dtype)}
    optimizer = schedule_free(optax.sgd(1.0), learning_rate=1.0, b1=0.9)
    state, update = optimizer.init(parameters), jax.jit(optimizer.update)
    for _ in range(STEPS):
        updates, state = update(gradients, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
    assert float(state.z["weight"][0]) == STEPS
    return float(schedule_free_eval_params(state, parameters)["weight"][0]), state


print(f"optax {version('optax')}, jax {version('jax')};", end=" ")
print(f"the average of 1 to {STEPS}, which a weight in float32 goes through")
(right, whole), (wrong, half) = average("float32"), average("bfloat16")
print(f"all in float32: {right:.1f}; another parameter in bfloat16: {wrong:.1f}")
print(f"weights counted {whole.weight_sum:.0f}, {float(half.weight_sum):.0f};", end=" ")
print(f"b1 of the state {whole.b1:.4f}, {float(half.b1):.4f}")
sys.exit(abs(right - (STEPS + 1) / 2) > 1 or wrong < 1200)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
