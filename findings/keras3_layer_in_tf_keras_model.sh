#!/bin/bash
# tf_keras: a Keras 3 layer inside a tf_keras layer builds and predicts, and is never trained.
#
# Run on 2026-11-27, Python 3.11, Linux x86-64:
#   tensorflow 2.20.0, tf_keras 2.20.1, keras 3.15.1
#   tf_keras.layers.Dense: 21 parameters, trained: True
#   tf.keras.layers.Dense: 5 parameters, trained: False
# Expected: an error, or the Keras 3 layer's weights among the model's trainable weights.
# Seen: no error; the model has 5 parameters instead of 21, and `fit` leaves the layer unchanged.
# Affects code for `tf_keras` that takes `tf.keras.layers.Dense`, which is Keras 3 since
# TensorFlow 2.16 unless TF_USE_LEGACY_KERAS=1 is set.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile \
  tensorflow==2.20.0 tf_keras==2.20.1 keras==3.15.1
cat > "$folder/find.py" <<'PYTHON'
import keras
import numpy as np
import tensorflow as tf
import tf_keras


class Block(tf_keras.layers.Layer):
    def __init__(self, dense):
        super().__init__()
        self.dense = dense

    def call(self, inputs):
        return self.dense(inputs)


def try_layer(dense):
    inputs = tf_keras.Input((3,))
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(1)(Block(dense)(inputs)))
    before = dense.get_weights()
    model.compile("sgd", "mse")
    model.fit(np.ones((32, 3)), np.ones(32), epochs=3, verbose=0)
    moved = any((old != new).any() for old, new in zip(before, dense.get_weights(), strict=True))
    return model.count_params(), moved


print(f"tensorflow {tf.__version__}, tf_keras {tf_keras.__version__}, keras {keras.__version__}")
found = {}
for name, layers in {"tf_keras": tf_keras.layers, "tf.keras": tf.keras.layers}.items():
    found[name] = try_layer(layers.Dense(4))
    print(f"{name}.layers.Dense: {found[name][0]} parameters, trained: {found[name][1]}")
raise SystemExit(0 if found == {"tf_keras": (21, True), "tf.keras": (5, False)} else 1)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py"
