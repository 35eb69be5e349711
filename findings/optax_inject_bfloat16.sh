#!/bin/bash
# optax: inject_hyperparams rounds Adam's b2 to 1 for weights in bfloat16, and the first step makes them NaN.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   optax 0.2.8, jax 0.10.2; a weight of 1 in bfloat16 after three steps
#   adam: 0.96; b2 as given
#   inject_hyperparams(adam): nan; b2 1.0000
#     b2=0.9985: nan; b2 1.0000
#     b2=0.995: 0.96; b2 0.9961
#     hyperparam_dtype=float32: 0.96; b2 0.9990
#     another parameter in float32: 0.96; b2 0.9990
# Expected: inject_hyperparams(adam)(rate) trains as adam(rate) does; it only lets the rate be read and set.
# Seen: `inject_hyperparams` (schedules/_inject.py) turns each number into an array of the highest type of the weights.
#   bfloat16 has nothing between 0.9961 and 1, so the default b2 of 0.999 becomes 1: the squares count 1 - b2 = 0, and
#   the correction of the bias divides 0 by 0. A b2 that does not become 1 is another one in silence, as are b1, eps and
#   the rate. Plain adam keeps Python's numbers, and is right with the same weights. google-deepmind/optax#1445 proposed
#   float32 for all numbers, and was closed.
# Affects training of models or LoRA that are in bfloat16 throughout, with a rate that is logged or set from outside,
#   and comparisons of b2. With one weight in float32 it is right, and with hyperparam_dtype=jnp.float32.
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


def train(optimizer, other="bfloat16"):
    """A weight of 1 in bfloat16 after three steps, and b2 of the state."""
    parameters = {"weight": jnp.ones(1, "bfloat16"), "other": jnp.ones(1, other)}
    gradients = {"weight": jnp.full(1, 0.5, "bfloat16"), "other": jnp.full(1, 0.5, other)}
    state = optimizer.init(parameters)
    for _ in range(3):
        updates, state = optimizer.update(gradients, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
    b2 = f"{float(state.hyperparams['b2']):.4f}" if hasattr(state, "hyperparams") else "as given"
    return f"{float(parameters['weight'][0]):.2f}", b2


adam = optax.inject_hyperparams(optax.adam)
wide = optax.inject_hyperparams(optax.adam, hyperparam_dtype=jnp.float32)
CASES = {
    "adam": (optax.adam(0.01),),
    "inject_hyperparams(adam)": (adam(0.01),),
    "  b2=0.9985": (adam(0.01, b2=0.9985),),
    "  b2=0.995": (adam(0.01, b2=0.995),),
    "  hyperparam_dtype=float32": (wide(0.01),),
    "  another parameter in float32": (adam(0.01), "float32"),
}
KNOWN = [("0.96", "as given"), ("nan", "1.0000"), ("nan", "1.0000"), ("0.96", "0.9961")] + 2 * [("0.96", "0.9990")]
print(f"optax {version('optax')}, jax {version('jax')}; a weight of 1 in bfloat16 after three steps")
results = [train(*case) for case in CASES.values()]
for title, (weight, b2) in zip(CASES, results, strict=True):
    print(f"{title}: {weight}; b2 {b2}")
sys.exit(results != KNOWN)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
