#!/bin/bash
# tf_keras: `fit` ends without an error when a callback raises OutOfRangeError.
#
# Run on 2026-11-27, Python 3.11, Linux x86-64:
#   tensorflow 2.20.0, tf_keras 2.20.1
#   steps of 20: 4, error: None
# Expected: the callback's error ends `fit`, as any other exception does, or training goes on.
# Seen: `fit` returns after 4 of 20 steps, and warns that the *training data* ran out.
# Cause: `fit` treats every OutOfRangeError in its loop as the end of its own dataset.
# Affects callbacks that read another `tf.data` iterator, or a truncated checkpoint.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0 tf_keras==2.20.1
cat > "$folder/find.py" <<'PYTHON'
import numpy as np
import tensorflow as tf
import tf_keras

probe = iter(tf.data.Dataset.range(3))


class Probe(tf_keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        probe.get_next()  # The fourth call raises OutOfRangeError.


model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
model.compile("sgd", "mse")
error = None
try:
    model.fit(
        np.ones((80, 2)), np.ones(80), batch_size=8, epochs=2, verbose=0, callbacks=[Probe()]
    )
except tf.errors.OutOfRangeError as raised:
    error = raised
steps = int(model.optimizer.iterations)
print(f"tensorflow {tf.__version__}, tf_keras {tf_keras.__version__}")
print(f"steps of 20: {steps}, error: {error}")
raise SystemExit(0 if steps == 4 and error is None else 1)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py"
