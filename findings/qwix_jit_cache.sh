#!/bin/bash
# Qwix: JAX's cache decides whether a layer is quantized, and a float model may answer as the quantized one.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   qwix 0.1.8, flax 0.12.8, jax 0.10.2; errors of the scores
#   nnx.Linear: quantized 0.58%, float after it 0.00%; float 0.00%, quantized after it 0.58%
#   rows @ kernel: quantized 0.72%, float after it 0.72%; float 0.00%, quantized after it 0.00%
#   nnx.Embed.attend: quantized 0.65%, float after it 0.65%; float 0.00%, quantized after it 0.00%
#   with disable_jit=True: 0.58%, 0.72%, 0.65%, float after it 0.00%, 0.00%, 0.00%
# Expected: a model with a QtProvider is quantized and one without is not, whatever ran before.
# Seen: while a quantized model runs, Qwix replaces jax.lax.dot_general. jnp.dot, jnp.matmul and @ are jitted functions
#   that call it, and JAX keeps what it traced of them by shape and type, for the whole process. So whichever model
#   comes first leaves its own version of the product to the other one, also within nnx.jit. There is no message. Until
#   google/qwix#230 (April 2026) Qwix switched jit off while it traced, which is now the option disable_jit.
# Affects training with quantization of models with tied embeddings (nnx.Embed.attend) or with products of their own,
#   comparisons with the float model in one process, which show no loss by quantization, and evaluations of the float
#   model. nnx.Linear, which calls lax.dot_general itself, is right. QtProvider(rules, disable_jit=True) helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile qwix==0.1.8 flax==0.12.8 jax==0.10.2 2> /dev/null
export JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import functools
import sys
from importlib.metadata import version

import jax
import numpy as np
import qwix
from flax import nnx

ROWS = np.random.default_rng(0).normal(size=(5, 12)).astype("float32")


class Product(nnx.Module):
    """A layer that is written as a product."""

    def __init__(self):
        self.kernel = nnx.Param(nnx.initializers.lecun_normal()(jax.random.key(0), (12, 16)))

    def __call__(self, rows):
        return rows @ self.kernel[...]


class Scores(nnx.Module):
    """Scores of 16 tokens by their vectors, as in a language model with tied embeddings."""

    def __init__(self):
        self.tokens = nnx.Embed(16, 12, rngs=nnx.Rngs(0))

    def __call__(self, rows):
        return self.tokens.attend(rows)


LAYERS = {
    "nnx.Linear": lambda: nnx.Linear(12, 16, use_bias=False, rngs=nnx.Rngs(0)),
    "rows @ kernel": Product,
    "nnx.Embed.attend": Scores,
}
WRONG = {"nnx.Linear": (True, False, False, True)} | dict.fromkeys(list(LAYERS)[1:], (True, True, False, False))


def quantized(new, **options):
    rule = qwix.QtRule(module_path=".*", weight_qtype="int8", act_qtype="int8")
    return qwix.quantize_model(new(), qwix.QtProvider([rule], **options), ROWS)


def error(layer):
    """How far scores are from those in float by NumPy, in percent."""
    (weight,) = (np.asarray(value) for value in jax.tree.leaves(nnx.state(layer, nnx.Param)))
    scores = ROWS @ weight if len(weight) == 12 else ROWS @ weight.T
    answers = nnx.jit(lambda layer, rows: layer(rows))(layer, ROWS)
    return 100 * float(np.linalg.norm(answers - scores) / np.linalg.norm(scores))


def errors(*models):
    """The errors of models that run one after the other in a fresh process."""
    jax.clear_caches()
    return [error(model()) for model in models]


print(", ".join(f"{name} {version(name)}" for name in ("qwix", "flax", "jax")) + "; errors of the scores")
failed, fixed = False, []
for name, new in LAYERS.items():
    first, after = errors(functools.partial(quantized, new), new)
    plain, then = errors(new, functools.partial(quantized, new))
    fixed.append(errors(functools.partial(quantized, new, disable_jit=True), new))
    print(f"{name}: quantized {first:.2f}%, float after it {after:.2f}%;", end=" ")
    print(f"float {plain:.2f}%, quantized after it {then:.2f}%")
    failed |= tuple(value > 0.1 for value in (first, after, plain, then)) != WRONG[name]
first, after = (", ".join(f"{value:.2f}%" for value in values) for values in zip(*fixed, strict=True))
print(f"with disable_jit=True: {first}, float after it {after}")
failed |= any(pair[0] < 0.1 or pair[1] > 0.1 for pair in fixed)
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
