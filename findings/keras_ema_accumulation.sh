#!/bin/bash
# Keras 3: with gradient_accumulation_steps, use_ema averages over small batches, and hardly averages the weights.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   keras 3.15.1, jax 0.10.2; 40 updates by 1
#   ema_momentum 0.9, without accumulation: 31.15; overwritten every 10 updates: 16.90
#   the same, 2 small batches for an update: 35.26; overwritten: 22.06; ema_momentum 0.81 without accumulation: 35.74
#   the same, 8 small batches for an update: 38.42; overwritten: 30.71; ema_momentum 0.43 without accumulation: 39.24
#   ema_momentum 0.987, 8 small batches for an update: 30.29
# Expected: "model & optimizer variables will not be updated at every step", and the EMA is to look at "accumulated"
#   iterations: the average counts updates, whether gradients are accumulated for them or not.
# Seen: `_backend_apply_gradients` (keras/src/optimizers/base_optimizer.py, and backend/jax/optimizer.py) makes the
#   update in each n-th call alone, but moves the average in every call, between updates towards the same weights. So a
#   momentum m acts much like m to the power of n, 0.99 with 32 small batches like 0.72. With ema_overwrite_frequency
#   the weights are also overwritten n times in a row, as iterations stands still meanwhile. TensorFlow's backend gives
#   the same numbers. There is no message.
# Affects the weights that fit ends with, and those that SwapEMAWeights evaluates and saves: accumulating small batches
#   instead of a large one gives another model, with most of the noise that the average was to remove. The
#   n-th root of the momentum that is wanted helps, where nothing is overwritten.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile keras==3.15.1 jax==0.10.2 2> /dev/null
export KERAS_BACKEND=jax JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import sys

import jax
import keras
import numpy as np

UPDATES = 40


def averaged(steps, momentum=0.9, **options):
    """The weight that fit ends with, after updates by 1 from 0 on."""
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input([1]), layer])
    options |= {"use_ema": True, "ema_momentum": momentum, "gradient_accumulation_steps": steps}
    optimizer = keras.optimizers.SGD(1.0, **options)
    model.compile(optimizer, lambda _, answers: -keras.ops.mean(answers))
    rows = np.ones((UPDATES * (steps or 1), 1), "float32")
    model.fit(rows, rows, batch_size=1, shuffle=False, verbose=0)
    assert int(optimizer.iterations) == UPDATES
    return float(layer.kernel[0, 0])


print(f"keras {keras.__version__}, jax {jax.__version__}; {UPDATES} updates by 1")
plain, written = averaged(None), averaged(None, ema_overwrite_frequency=10)
print(f"ema_momentum 0.9, without accumulation: {plain:.2f}; overwritten every 10 updates: {written:.2f}")
failed = False
for steps in 2, 8:
    found, overwritten = averaged(steps), averaged(steps, ema_overwrite_frequency=10)
    other = averaged(None, momentum=0.9**steps)
    print(f"the same, {steps} small batches for an update: {found:.2f}; overwritten: {overwritten:.2f}", end="; ")
    print(f"ema_momentum {0.9**steps:.2f} without accumulation: {other:.2f}")
    failed |= abs(found - other) > 1 or found - plain < 3 or overwritten - written < 3
root = averaged(8, momentum=0.9 ** (1 / 8))
print(f"ema_momentum {0.9 ** (1 / 8):.3f}, 8 small batches for an update: {root:.2f}")
sys.exit(failed or abs(root - plain) > 1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
