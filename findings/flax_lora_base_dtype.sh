#!/bin/bash
# Flax: nnx.LoRA around a layer also changes the type that the layer computes in, so a fresh LoRA changes the model.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   flax 0.12.8, jax 0.10.2
#   a fresh LoRA changes a layer by 0.000%, with dtype=bfloat16 0.167%, LoRALinear 0.000%
#   a layer of bfloat16 answers in bfloat16, the next one in bfloat16; with LoRA in float32, float32
# Expected: lora_b is zero at first, so a wrapped layer computes what it did. `dtype` is for the two small products.
# Seen: `LoRA.__call__` (flax/nnx/nn/lora.py) promotes the inputs together with lora_a and lora_b, and calls base_module
#   with the promoted inputs. With a dtype of bfloat16, a layer in float32 gets inputs that are rounded to 8 bits. By
#   default lora_a and lora_b are float32, so a layer of bfloat16 weights, and all that follow it, compute in float32.
#   nnx.LoRALinear leaves the base alone in the first case.
# Affects LoRA in mixed precision: the answers change before any training, and a bfloat16 model with LoRA takes the
#   memory and time of a float32 one. A promote_dtype that leaves the inputs alone helps in the first case, param_dtype
#   in the second one.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile flax==0.12.8 jax==0.10.2 2> /dev/null
export JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import jax
import jax.numpy as jnp
from flax import nnx

SIZE, RANK = 256, 4
INPUTS = jax.random.normal(jax.random.key(0), (32, SIZE))


def linear(dtype, seed=0):
    return nnx.Linear(SIZE, SIZE, param_dtype=dtype, rngs=nnx.Rngs(seed))


def wrapped(layer, **options):
    return nnx.LoRA(SIZE, RANK, SIZE, base_module=layer, rngs=nnx.Rngs(1), **options)


def change(layer):
    """How far a layer is from the base in float32, in percent."""
    base = linear(jnp.float32)(INPUTS)
    return float(100 * jnp.linalg.norm(layer(INPUTS) - base) / jnp.linalg.norm(base))


print(f"flax {version('flax')}, jax {jax.__version__}")
found = [change(wrapped(linear(jnp.float32))), change(wrapped(linear(jnp.float32), dtype=jnp.bfloat16))]
found.append(change(nnx.LoRALinear(SIZE, SIZE, lora_rank=RANK, lora_dtype=jnp.bfloat16, rngs=nnx.Rngs(0))))
print("a fresh LoRA changes a layer by {:.3f}%, with dtype=bfloat16 {:.3f}%, LoRALinear {:.3f}%".format(*found))
types = []
for layer in linear(jnp.bfloat16), wrapped(linear(jnp.bfloat16)):
    hidden = layer(INPUTS.astype(jnp.bfloat16))
    types.append((hidden.dtype.name, linear(jnp.bfloat16, 2)(hidden).dtype.name))
print("a layer of bfloat16 answers in {}, the next one in {}; with LoRA in {}, {}".format(*types[0], *types[1]))
right = found[0] < 1e-4 < 0.05 < found[1] and found[2] < 1e-4
sys.exit(not right or types != [("bfloat16", "bfloat16"), ("float32", "float32")])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
