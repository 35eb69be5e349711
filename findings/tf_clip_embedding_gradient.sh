#!/bin/bash
# TensorFlow, tf_keras and Keras 3: clipping the gradient of an embedding takes each occurrence of a token for a row.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   tensorflow 2.20.0, tf_keras 2.20.1, keras 3.15.1, limit 1.0
#   tf.clip_by_global_norm: 2.86 with a lookup, 1.00 with one-hot rows
#   tf.clip_by_norm: 2.86 with a lookup, 1.00 with one-hot rows
#   tf.clip_by_value: 9.00 with a lookup, 1.00 with one-hot rows
#   tf_keras global_clipnorm: 2.86 with a lookup, 1.00 with one-hot rows
#   tf_keras clipnorm: 2.86 with a lookup, 1.00 with one-hot rows
#   tf_keras clipvalue: 9.00 with a lookup, 1.00 with one-hot rows
#   keras global_clipnorm: 2.86 with a lookup, 1.00 with one-hot rows
#   keras clipnorm: 2.86 with a lookup, 1.00 with one-hot rows
#   keras clipvalue: 9.00 with a lookup, 1.00 with one-hot rows
# Expected: the norm of the gradient after clipping is at most the limit, and no value is above it, however the lookup
#   is written. The docstring of tf.clip_by_global_norm allows IndexedSlices, and gives the norm of the tensor as its
#   formula; Keras says of `clipnorm` that the gradient of each weight has at most this norm.
# Seen: the gradient of a lookup is an IndexedSlices with a row for each token of the batch. Clipping looks at these
#   rows, and rows of equal tokens are added only after it, in both Keras too. So k equal rows count as sqrt(k) times
#   one of them, while their sum is k times as long. clip_by_value allows a token k times the limit. With a product with
#   one-hot rows, the usual way on TPUs, the same model takes another step.
# Affects whoever trains a BERT's embeddings with clipping, as BERT does: [CLS] and [SEP] are in each text, and the row
#   of a segment is in each token. tf.convert_to_tensor(gradient) before clipping helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0 tf-keras==2.20.1 keras==3.15.1 2> /dev/null
export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
cat > "$folder/find.py" <<'PYTHON'
import sys

import keras
import numpy as np
import tensorflow as tf
import tf_keras

TOKENS = [0] * 9 + [1]  # one token nine times, another one once
LIMIT = 1.0


def gradient(one_hot):
    """The gradient of the sum of the rows that are looked up."""
    table = tf.Variable(tf.zeros([3, 4]))
    with tf.GradientTape() as tape:
        rows = tf.one_hot(TOKENS, 3) @ table if one_hot else tf.gather(table, TOKENS)
        loss = tf.reduce_sum(rows)
    return tape.gradient(loss, table)


def step(optimizer, variable, one_hot):
    """What one step with learning rate 1 changes, which is the clipped gradient."""
    optimizer.apply_gradients([(gradient(one_hot), variable)])
    return np.asarray(variable)


def clipped(one_hot):
    dense = tf.convert_to_tensor
    yield "tf.clip_by_global_norm", np.linalg.norm(dense(tf.clip_by_global_norm([gradient(one_hot)], LIMIT)[0][0]))
    yield "tf.clip_by_norm", np.linalg.norm(dense(tf.clip_by_norm(gradient(one_hot), LIMIT)))
    yield "tf.clip_by_value", np.abs(dense(tf.clip_by_value(gradient(one_hot), -LIMIT, LIMIT))).max()
    for package, new_variable in (tf_keras, tf.Variable), (keras, keras.Variable):
        for option in "global_clipnorm", "clipnorm", "clipvalue":
            optimizer = package.optimizers.SGD(1.0, **{option: LIMIT})
            values = step(optimizer, new_variable(tf.zeros([3, 4])), one_hot)
            found = np.abs(values).max() if option == "clipvalue" else np.linalg.norm(values)
            yield f"{package.__name__} {option}", found


print(f"tensorflow {tf.__version__}, tf_keras {tf_keras.__version__}, keras {keras.__version__}, limit {LIMIT}")
wrong = 0
for (name, lookup), (_, product) in zip(clipped(False), clipped(True)):
    print(f"{name}: {lookup:.2f} with a lookup, {product:.2f} with one-hot rows")
    wrong += int(lookup > 1.5 * LIMIT and product < 1.01 * LIMIT)
sys.exit(wrong != 9)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
