#!/bin/bash
# Keras 3: LoRA that has loaded weights does not train.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   keras 3.15.1, tensorflow 2.20.0
#   fall of the loss in two more epochs: 1.69; by a model that has loaded the weights: 0.00
# Expected: training goes on from the loaded weights.
# Seen: saving adds the product of A and B to the kernel, and loading sets both to zero (`load_own_variables` in
#   keras/src/layers/core/dense.py; einsum_dense.py, embedding.py and base_conv.py have the same). Answers are right,
#   but the gradient of each factor has the other one as a factor. So both stay zero, without a message.
# Affects who resumes a fine-tuning with enable_lora. Load the weights first, and enable LoRA then. (BackupAndRestore
# loads the optimizer too, whose momentum moves the factors away from zero, but not to where they were.)
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0 keras==3.15.1 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf

random = np.random.default_rng(0)
x = random.normal(size=(256, 8)).astype("float32")
y = x @ random.normal(size=(8, 4)).astype("float32")


def new_model():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(4, use_bias=False)])
    model.layers[0].enable_lora(2)
    model.compile(keras.optimizers.Adam(0.05), "mse")
    return model


def fall(model):
    """How much the loss falls in two epochs."""
    before = model.evaluate(x, y, verbose=0)
    model.fit(x, y, epochs=2, verbose=0)
    return before - model.evaluate(x, y, verbose=0)


def loaded(folder):
    model, again = new_model(), new_model()
    model.fit(x, y, epochs=2, verbose=0)
    model.save_weights(f"{folder}/model.weights.h5")
    again.load_weights(f"{folder}/model.weights.h5")
    np.testing.assert_allclose(model.predict(x, verbose=0), again.predict(x, verbose=0), atol=1e-5)
    return model, again


with tempfile.TemporaryDirectory() as folder:
    model, again = loaded(folder)
    goes_on, after_loading = fall(model), fall(again)
print(f"keras {keras.__version__}, tensorflow {tf.__version__}")
print(
    f"fall of the loss in two more epochs: {goes_on:.2f}; "
    f"by a model that has loaded the weights: {after_loading:.2f}"
)
sys.exit(goes_on < 0.1 or abs(after_loading) > 1e-6)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
