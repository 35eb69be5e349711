#!/bin/bash
# Qwix: LoRA on the weights of experts has one B for all of them, if the layer is written as an einsum.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   qwix 0.1.8, flax 0.12.8, jax 0.10.2; 8 experts, a change of rank 1 for each, LoRA of rank 1
#   dot_general: A (8, 12, 1), B (8, 1, 12); not learned: 0.0%
#   einsum: A (8, 12, 1), B (1, 12); not learned: 76.9%
# Expected: a LoRA of the given rank for each expert, as with dot_general, which computes the same product.
# Seen: for an einsum, `_parse_einsum_str_for_lora` gives each axis of the weight that the input has too, so also the
#   axis of the experts, to A alone. All changes then lie in one space of `rank` directions of the output, and training
#   one expert moves the others. For dot_general, `_create_lora_layer_shapes` gives that axis to A and B. Nothing warns.
# Affects LoRA on mixtures of experts, whose layers are mostly einsums ("ebi,eio->ebo"), and any einsum or nnx.Einsum
#   with an axis that is in the input, the weight and the output. Writing the product as dot_general helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile qwix==0.1.8 flax==0.12.8 jax==0.10.2 optax==0.2.8 2> /dev/null
export JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
import optax
import qwix
from flax import nnx

EXPERTS, SIZE, RANK = 8, 12, 1
RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(EXPERTS, 64, SIZE)).astype("float32")  # the rows of each expert
CHANGE = RANDOM.normal(size=(EXPERTS, SIZE, RANK)) @ RANDOM.normal(size=(EXPERTS, RANK, SIZE))
WAYS = {
    "dot_general": lambda rows, kernel: jax.lax.dot_general(rows, kernel, (((2,), (1,)), ((0,), (0,)))),
    "einsum": lambda rows, kernel: jnp.einsum("ebi,eio->ebo", rows, kernel),
}


class Experts(nnx.Module):
    """One linear layer for each expert."""

    def __init__(self, way):
        self.way = way
        self.kernel = nnx.Param(jnp.zeros((EXPERTS, SIZE, SIZE)))

    def __call__(self, rows):
        return WAYS[self.way](rows, self.kernel[...])


def train(way):
    """The factors' shapes, and what of the change LoRA does not learn, in percent."""
    rule = qwix.LoraProvider(module_path=".*", rank=RANK, alpha=RANK)
    layer = qwix.apply_lora_to_model(Experts(way), rule, ROWS, rngs=nnx.Rngs(0))
    wanted = jnp.einsum("ebi,eio->ebo", ROWS, CHANGE.astype("float32"))
    optimizer = nnx.Optimizer(layer, optax.adam(optax.cosine_decay_schedule(0.05, 1000)), wrt=nnx.LoRAParam)

    @nnx.jit
    def step(layer, optimizer):
        def loss(layer):
            return jnp.mean((layer(ROWS) - wanted) ** 2)

        optimizer.update(layer, nnx.grad(loss, argnums=nnx.DiffState(0, nnx.LoRAParam))(layer))

    for _ in range(1000):
        step(layer, optimizer)
    left = float(jnp.linalg.norm(layer(ROWS) - wanted) / jnp.linalg.norm(wanted))
    shapes = [value.shape for value in jax.tree.leaves(nnx.state(layer, nnx.LoRAParam))]
    return shapes, round(100 * left, 1)


print(
    ", ".join(f"{name} {version(name)}" for name in ("qwix", "flax", "jax"))
    + f"; {EXPERTS} experts, a change of rank {RANK} for each, LoRA of rank {RANK}"
)
found = {way: train(way) for way in WAYS}
for way, (shapes, left) in found.items():
    print(f"{way}: A {shapes[0]}, B {shapes[1]}; not learned: {left}%")
sys.exit(found["dot_general"][1] > 5 or found["einsum"][1] < 50)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
