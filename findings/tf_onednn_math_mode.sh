#!/bin/bash
# TensorFlow on CPU: TF_SET_ONEDNN_FPMATH_MODE=BF16 rounds the same product or not, by how it is written.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64 with AMX:
#   TensorFlow 2.20.0
#   largest error of a product, 384 terms: tf.matmul of matrices 8e-05, of a batch 0.3, tf.einsum 0.3
# Expected: the variable lets oneDNN multiply float32 in bfloat16, in all products or in none.
# Seen: products of a batch of matrices and tf.einsum are computed in bfloat16, at three times the speed. Products
# of two matrices stay float32, at the old speed: they call oneDNN's sgemm, which has no such mode. So the same
# layer has another precision and speed as Dense on [rows, size] than as EinsumDense on [batch, positions, size].
# Without AMX there is no such mode, and nothing to see.
# Affects whoever sets the variable to train faster, or compares digits between two ways to write a layer.
set -eu
if ! grep -q amx_bf16 /proc/cpuinfo; then
    echo "This processor has no AMX."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1 TF_SET_ONEDNN_FPMATH_MODE=BF16
"$folder/venv/bin/python" - 2> /dev/null <<'PYTHON'
import sys

import numpy as np
import tensorflow as tf

x = tf.random.stateless_normal([1792, 384], [0, 1])
kernel = tf.random.stateless_normal([384, 1536], [0, 2])
exact = x.numpy().astype("f8") @ kernel.numpy().astype("f8")
products = {
    "tf.matmul of matrices": tf.function(lambda x, kernel: tf.matmul(x, kernel)),
    "of a batch": tf.function(lambda x, kernel: tf.matmul(x[None], kernel[None])[0]),
    "tf.einsum": tf.function(lambda x, kernel: tf.einsum("abc,cd->abd", x[None], kernel)[0]),
}
errors = {name: np.abs(run(x, kernel).numpy() - exact).max() for name, run in products.items()}
print("TensorFlow", tf.__version__)
shown = ", ".join(f"{name} {error:.1g}" for name, error in errors.items())
print(f"largest error of a product, 384 terms: {shown}")
rounded = [error > 0.01 for error in errors.values()]
sys.exit(rounded != [False, True, True])
PYTHON
