#!/bin/bash
# Qwix: the dropout of LoRA also acts in evaluation.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   qwix 0.1.8, flax 0.12.8, jax 0.10.2
#   dropout 0.0: two evaluations of a row differ by 0.00
#   dropout 0.5: two evaluations of a row differ by 3.52
# Expected: after model.eval(), dropout does nothing, as with the layers of Flax.
# Seen: Qwix makes its dropout layer anew in each call with deterministic=False; eval() does not reach it. Without
#   random numbers (qwix_rngs) the call is an error. Linen's models do the same.
# Affects metrics during training, and predictions. A copy of the model with a rule without dropout, and the weights
#   of the first, evaluates right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile qwix==0.1.8 flax==0.12.8 jax==0.10.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import jax
import jax.numpy as jnp
import qwix
from flax import nnx

ROW = jax.random.normal(jax.random.key(0), (1, 8))


def model(dropout):
    """A linear layer with LoRA, after some training."""
    rule = qwix.LoraProvider(module_path=".*", rank=4, alpha=8.0, dropout=dropout)
    layers = nnx.Sequential(nnx.Linear(8, 16, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(1)))
    layers = qwix.apply_lora_to_model(layers, rule, ROW, rngs=nnx.Rngs(2))
    layers.set_attributes(qwix_rngs=nnx.Rngs(dropout=3))
    trained = jax.tree.map(lambda value: value + 0.3, nnx.state(layers, nnx.LoRAParam))
    nnx.update(layers, trained)
    return layers


print(", ".join(f"{name} {version(name)}" for name in ("qwix", "flax", "jax")))
for dropout in (0.0, 0.5):
    layers = model(dropout)
    layers.eval()
    found = float(jnp.abs(layers(ROW) - layers(ROW)).max())
    print(f"dropout {dropout}: two evaluations of a row differ by {found:.2f}")
    if (found > 1e-3) != (dropout > 0):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
