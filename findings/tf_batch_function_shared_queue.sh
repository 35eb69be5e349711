#!/bin/bash
# TensorFlow: two functions with `tf.nondifferentiable_batch_function` get each other's answers.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   tensorflow 2.20.0
#   alone: [1.0, 2.0], at the same time: [2.0, 2.0], with scopes: [1.0, 2.0]
# Expected: `one` returns 1 and `two` returns 2, as they do when they are called alone.
# Seen: when both are called at the same time, both return what one of them computes.
# Cause: the decorator passes `shared_name=` its name scope, which is "batch/" in each tf.function.
#   Operations with the same name share a queue, and a batch is computed by the function of its
#   last row (`BatchResource::ProcessFuncBatchImpl`, tensorflow/core/kernels/batch_kernels.cc).
# Affects servers of several models or versions. `with tf.name_scope(UNIQUE):` around the call helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0
cat > "$folder/find.py" <<'PYTHON'
from concurrent import futures

import tensorflow as tf


def adder(number, scope=""):
    @tf.nondifferentiable_batch_function(1, 8, 200_000)
    def add(x):
        return x + number

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def serve(x):
        if not scope:
            return add(x)
        with tf.name_scope(scope):
            return add(x)

    return serve


def together(one, two):
    with futures.ThreadPoolExecutor(2) as pool:
        pending = [pool.submit(function, tf.constant([0.0])) for function in (one, two)]
        return [float(future.result()[0]) for future in pending]


one, two = adder(1.0), adder(2.0)
alone = [float(function(tf.constant([0.0]))[0]) for function in (one, two)]
both = together(one, two)
scoped = together(adder(1.0, "one"), adder(2.0, "two"))
print(f"tensorflow {tf.__version__}")
print(f"alone: {alone}, at the same time: {both}, with scopes: {scoped}")
raise SystemExit(0 if alone == scoped == [1.0, 2.0] and both in ([1.0, 1.0], [2.0, 2.0]) else 1)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py"
