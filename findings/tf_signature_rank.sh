#!/bin/bash
# TensorFlow: a SavedModel's signature takes a scalar for a vector, and a reshape to [-1] keeps it one.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   TensorFlow 2.20.0
#   shapes for one text: {'reshape': (), 'where': (1,)}
# Expected: an error that the signature wants shape [None], or a batch of one after the reshape.
# Seen: no error. Grappler removes the reshape, because the signature promises a vector, and the
# answer is a scalar. With tf.where and a condition of shape [1] it is a vector of one.
# Affects servers that take one text or a list of texts: what follows the reshape gets the wrong rank.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0
cat > "$folder/rank.py" <<'PYTHON'
import sys

import tensorflow as tf


class Lengths(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
    def __call__(self, texts):
        batch = tf.where(tf.fill([tf.size(texts)], True), texts, "")
        reshaped = tf.strings.length(tf.reshape(texts, [-1]))
        return {"reshape": reshaped, "where": tf.strings.length(batch)}


module = Lengths()
tf.saved_model.save(module, sys.argv[1], signatures=module.__call__)
answer = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
shapes = {name: tuple(value.shape) for name, value in answer(texts=tf.constant("one")).items()}
print(f"TensorFlow {tf.__version__}")
print("shapes for one text:", {name: shapes[name] for name in sorted(shapes)})
raise SystemExit(0 if shapes == {"reshape": (), "where": (1,)} else 1)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1 "$folder/venv/bin/python" "$folder/rank.py" "$folder/model" 2> /dev/null
