#!/bin/bash
# TensorFlow on CPU: the gradients of tf.einsum take much longer than those of transposed matrices.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64 with AVX-512:
#   TensorFlow 2.20.0
#   tf.einsum takes 1.57 times the processor time of transposed products
# Expected: for products of attention, tf.einsum chooses the best of the equivalent ways, or one that is
# nearly as fast.
# Seen: forward and backward pass of softmax(QK^T)V, 32 rows of 64, 12 heads of 32, take some 1.5 times the
# processor time of two tf.transpose and tf.matmul. Einsum's gradients copy their operands into another
# order; those of tf.matmul(transpose_b=True) are products with flags. Outputs are equal.
# Affects every attention that is written with einsum, such as MultiHeadAttention of Keras: 6% of the
# training step of a small BERT.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
"$folder/venv/bin/python" - 2> /dev/null <<'PYTHON'
import statistics
import sys
import time

import tensorflow as tf


def einsum(query, key, value):
    weights = tf.nn.softmax(tf.einsum("btnh,bsnh->bnts", query, key))
    return tf.einsum("bnts,bsnh->btnh", weights, value)


def matmul(query, key, value):
    query, key, value = (tf.transpose(x, [0, 2, 1, 3]) for x in (query, key, value))
    weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True))
    return tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])


def gradients_of(attend):
    @tf.function
    def run(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            output = inputs[0]
            for _ in range(6):
                output = attend(output, *inputs[1:])
        return tape.gradient(output, inputs)

    return run


inputs = [tf.random.stateless_normal([32, 64, 12, 32], [i, 0]) for i in range(3)]
runs = {"einsum": gradients_of(einsum), "matmul": gradients_of(matmul)}
for one, other in zip(*(run(*inputs) for run in runs.values())):
    tf.debugging.assert_near(one, other, atol=1e-3)
times = {name: [] for name in runs}
for _ in range(15):
    for name, run in runs.items():
        start = time.process_time()
        run(*inputs)
        times[name].append(time.process_time() - start)
ratio = statistics.median(times["einsum"]) / statistics.median(times["matmul"])
print("TensorFlow", tf.__version__)
print(f"tf.einsum takes {ratio:.2f} times the processor time of transposed products")
sys.exit(ratio < 1.15)
PYTHON
