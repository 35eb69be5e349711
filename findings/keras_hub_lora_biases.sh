#!/bin/bash
# KerasHub: enable_lora also trains biases, and save_lora_weights leaves them out.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   keras 3.15.1, keras-hub 0.32.0
#   trained: bias, lora_kernel_a, lora_kernel_b
#   loaded file: difference 0.0133; with the trained biases: 0.0000
# Expected: with LoRA everything else is frozen, as the docstring says, and the file gives the trained model.
# Seen: the biases of the layers that LoRA changes, query and value, stay trainable and are trained. The file
#   holds the two factors only. A base with this file computes something else than the model that was trained.
# Affects whoever keeps LoRA files of a backbone with biases, such as BERT. Freezing layer.bias before training, or
#   saving all weights, helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0 keras==3.15.1 keras-hub==0.32.0 2> /dev/null
export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile

import keras
import keras_hub
import numpy as np

ROWS = np.array([[2, 5, 3], [2, 7, 3]])
INPUTS = {"token_ids": ROWS, "segment_ids": 0 * ROWS, "padding_mask": 0 * ROWS + 1}
LABELS = np.array([0, 1])


def backbone():
    keras.utils.set_random_seed(0)
    sizes = {"hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32, "vocabulary_size": 9}
    return keras_hub.models.BertBackbone(num_layers=2, dropout=0.0, max_sequence_length=4, **sizes)


def output(model):
    return np.asarray(model(INPUTS)["sequence_output"])


print(f"keras {keras.__version__}, keras-hub {keras_hub.__version__}")
model = backbone()
model.enable_lora(4)
names = sorted({weight.path.split("/")[-1] for weight in model.trainable_weights})
print("trained:", ", ".join(names))
head = keras.layers.Dense(2, activation="softmax")(model.output["pooled_output"])
classifier = keras.Model(model.input, head)
classifier.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy")
classifier.fit(INPUTS, LABELS, epochs=5, verbose=0)
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "task.lora.h5")
    model.save_lora_weights(file)
    loaded = backbone()
    loaded.load_lora_weights(file)
found = float(np.abs(output(loaded) - output(model)).max())
for one, trained in zip(loaded.weights, model.weights):
    if one.path.endswith("/bias"):
        one.assign(trained)
with_biases = float(np.abs(output(loaded) - output(model)).max())
print(f"loaded file: difference {found:.4f}; with the trained biases: {with_biases:.4f}")
sys.exit("bias" not in names or found < 1e-3 or with_biases > 1e-5)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
