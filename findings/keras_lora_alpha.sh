#!/bin/bash
# Keras 3: the argument lora_alpha of Dense and Embedding has no effect, and copies lose what enable_lora was given.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   keras 3.15.1, tensorflow 2.20.0
#   lora_rank 2, lora_alpha 8: Dense adds 1.0, Embedding 1.0, EinsumDense 4.0 times A B; after clone_model of a model
#   with enable_lora(2, lora_alpha=8): 1.0, 1.0, 4.0
# Expected: lora_alpha / lora_rank times A B, so 4, as the documentation of all three says.
# Seen: `build` of Dense and Embedding calls enable_lora(lora_rank) without lora_alpha, so it is lora_rank again. Models
#   from from_config, clone_model and load_model are built so. load_model has A B in the kernel, so its answers are
#   right, and only training goes on with another factor; with clone_model and set_weights the answers are wrong.
# Affects LoRA by arguments, and copies. Call enable_lora with lora_alpha on the built layer.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0 keras==3.15.1 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import keras
import numpy as np
import tensorflow as tf

LAYERS = {
    "Dense": lambda **more: keras.layers.Dense(3, use_bias=False, **more),
    "Embedding": lambda **more: keras.layers.Embedding(4, 3, **more),
    "EinsumDense": lambda **more: keras.layers.EinsumDense("ab,bc->ac", [3], **more),
}


def new_model(name, **more):
    if name == "Embedding":
        inputs = keras.Input([], dtype="int32")
    else:
        inputs = keras.Input([4])
    return keras.Model(inputs, LAYERS[name](**more)(inputs))


def factor(model):
    """By what the product of A and B is multiplied."""
    layer = model.layers[-1]
    x = np.arange(4) if isinstance(layer, keras.layers.Embedding) else np.eye(4, dtype="float32")
    a, b = (variable for variable in layer.trainable_variables if "lora" in variable.name)
    random = np.random.default_rng(0)
    a.assign(np.zeros(a.shape))
    before = np.array(model(x))
    for variable in (a, b):
        variable.assign(random.normal(size=variable.shape))
    change = np.array(model(x)) - before
    return round(float(np.linalg.norm(change) / np.linalg.norm(a.numpy() @ b.numpy())), 3)


def copied(name):
    model = new_model(name)
    model.layers[-1].enable_lora(2, lora_alpha=8)
    return factor(keras.models.clone_model(model))


print(f"keras {keras.__version__}, tensorflow {tf.__version__}")
given = [factor(new_model(name, lora_rank=2, lora_alpha=8)) for name in LAYERS]
copies = [copied(name) for name in LAYERS]
print(
    f"lora_rank 2, lora_alpha 8: Dense adds {given[0]}, Embedding {given[1]}, EinsumDense "
    f"{given[2]} times A B; after clone_model of a model\n"
    f"with enable_lora(2, lora_alpha=8): {copies[0]}, {copies[1]}, {copies[2]}"
)
sys.exit(given != [1.0, 1.0, 4.0] or copies != [1.0, 1.0, 4.0])
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
