#!/bin/bash
# KerasHub: load_lora_weights loads a part of a file whose layers are not the default ones, without a message.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   keras 3.15.1, keras-hub 0.32.0
#   factors in the file: 16; loaded into a base: 8; difference 1.3524
#   loaded after enable_lora with the same layers: 16; difference 0.0000
# Expected: a base with the file computes what the model computed that wrote it, or the file is refused, as with
#   another rank.
# Seen: the file records the rank and not the layers. A base without LoRA gets it on query and value, and takes their
#   factors. All others are ignored.
# Affects whoever trains with target_layer_names. enable_lora with the same names before loading is right.
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
LAYERS = ["query", "value", "feedforward_intermediate_dense", "feedforward_output_dense"]


def backbone():
    keras.utils.set_random_seed(0)
    sizes = {"hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32, "vocabulary_size": 9}
    return keras_hub.models.BertBackbone(num_layers=2, dropout=0.0, max_sequence_length=4, **sizes)


def output(model):
    return np.asarray(model(INPUTS)["sequence_output"])


def factors(model):
    return [weight for weight in model.weights if "lora_kernel" in weight.path]


print(f"keras {keras.__version__}, keras-hub {keras_hub.__version__}")
model = backbone()
model.enable_lora(4, target_layer_names=LAYERS)
random = np.random.default_rng(0)
for weight in factors(model):
    weight.assign(0.3 * random.normal(size=weight.shape))
wanted = output(model)
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "task.lora.h5")
    model.save_lora_weights(file)
    plain, enabled = backbone(), backbone()
    plain.load_lora_weights(file)
    enabled.enable_lora(4, target_layer_names=LAYERS)
    enabled.load_lora_weights(file)
lost, kept = (float(np.abs(output(one) - wanted).max()) for one in (plain, enabled))
count = len(factors(model))
print(f"factors in the file: {count}; loaded into a base: {len(factors(plain))}; difference {lost:.4f}")
print(f"loaded after enable_lora with the same layers: {len(factors(enabled))}; difference {kept:.4f}")
sys.exit(lost < 1e-3 or kept > 1e-5)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
