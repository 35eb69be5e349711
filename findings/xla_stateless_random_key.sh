#!/bin/bash
# TensorFlow and XLA: each tf.random.stateless_* call compiles to hundreds of instructions for its key.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   TensorFlow 2.20.0
#   281 instructions with a seed, 25 with a key
# Expected: a seed of two numbers becomes the key of the generator in a few instructions.
# Seen: TensorFlow derives the key from the seed by running the generator once more
# (StatelessRandomGetKeyCounter), unrolled into some 270 instructions for each call. With 38 dropout layers
# that is a third of the instructions of a BERT-base training step. tf.raw_ops.StatelessRandomUniformFullIntV2
# with key and counter of one's own draws as many bits with a tenth of the instructions.
# Affects the compilation of every model with reproducible dropout.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
"$folder/venv/bin/python" - 2> /dev/null <<'PYTHON'
import sys

import tensorflow as tf


@tf.function(jit_compile=True)
def from_seed(seed):
    return tf.random.stateless_uniform([64], seed, None, None, tf.int32)


@tf.function(jit_compile=True)
def from_key(seed):
    key, draw = tf.unstack(tf.cast(seed, tf.uint64))
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[64],
        key=[key],
        counter=tf.stack([tf.zeros_like(draw), draw]),
        alg=tf.random.Algorithm.PHILOX.value,
        dtype=tf.int32,
    )


counts = []
for draw in (from_seed, from_key):
    program = draw.experimental_get_compiler_ir(tf.constant([1, 2]))(stage="hlo")
    counts.append(program.count(" = "))
print("TensorFlow", tf.__version__)
print(f"{counts[0]} instructions with a seed, {counts[1]} with a key")
sys.exit(counts[0] < 200 + counts[1])
PYTHON
