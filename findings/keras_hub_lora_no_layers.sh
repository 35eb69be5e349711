#!/bin/bash
# KerasHub: enable_lora finds no layer in SmolLM3, GPT-NeoX, T5 and ESM, and freezes all of the model.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   keras 3.15.1, keras-hub 0.32.0; trained by LoRA, and change of the output by training with a head
#   Llama: 4 layers, 8 variables; 2.754
#   SmolLM3: 0 layers, 0 variables; 0.000
#   GPT-NeoX: 0 layers, 0 variables; 0.000
#   T5: 0 layers, 0 variables; 0.000
#   ESM: 0 layers, 0 variables; 0.000
#   warnings about training: none
# Expected: LoRA on the queries and values, as the docstring of Backbone.enable_lora says, or an error.
# Seen: enable_lora freezes all layers and then looks for layers that are called query, value, query_dense or
#   value_dense. These models call them q_proj and v_proj (SmolLM3), query_key_value (GPT-NeoX), query_projector and
#   value_projector (T5), q_dense_layer and v_dense_layer (ESM), and do not override default_lora_layer_names. Nothing
#   checks that a layer was found. RWKV-7 gets LoRA on its value layers alone. keras-team/keras-hub#2104, which
#   keras-team/keras-hub#2107 resolved, was this for PaliGemma.
# Affects fine-tuning by enable_lora: a classifier trains its head alone, without a message. Only save_lora_weights
#   fails, after the training. enable_lora(rank, target_layer_names=[...]) with the model's own names helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile tensorflow==2.20.0 keras==3.15.1 keras-hub==0.32.0 2> /dev/null
export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1
cat > "$folder/find.py" <<'PYTHON'
import sys
import warnings

import keras
import keras_hub
import numpy as np

models = keras_hub.models
RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(1, 20, size=(16, 6))
LABELS = RANDOM.integers(0, 2, size=16)
COMMON = {"vocabulary_size": 20, "num_layers": 2, "hidden_dim": 16, "intermediate_dim": 32}
SMOL = {
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "rope_layer_enabled_list": [True, True],
    "layer_types": ["full_attention", "full_attention"],
    "mlp_bias": False,
    "layer_norm_epsilon": 1e-5,
    "max_position_embeddings": 8,
    "rope_theta": 1e4,
    "partial_rotary_factor": 1.0,
}
MODELS = {
    "Llama": lambda: models.LlamaBackbone(num_query_heads=2, num_key_value_heads=1, **COMMON),
    "SmolLM3": lambda: models.SmolLM3Backbone(**SMOL, **COMMON),
    "GPT-NeoX": lambda: models.GPTNeoXBackbone(num_heads=2, dropout=0.0, max_sequence_length=8, **COMMON),
    "T5": lambda: models.T5Backbone(num_heads=2, dropout=0.0, **COMMON),
    "ESM": lambda: models.ESMBackbone(num_heads=2, dropout=0.0, **COMMON),
}


def inputs(backbone):
    """Token ids for all inputs that take them, and masks of ones."""
    return {one.name: np.ones_like(IDS) if "mask" in one.name else IDS for one in backbone.inputs}


def hidden(output):
    return output["decoder_sequence_output"] if isinstance(output, dict) else output


def trained(name):
    """How many layers and variables LoRA trains, and by how much training changes the backbone's output."""
    keras.utils.set_random_seed(0)
    backbone = MODELS[name]()
    backbone.enable_lora(4)
    factors = len(backbone.trainable_weights)
    layers = len({weight.path.rsplit("/", 1)[0] for weight in backbone.trainable_weights})
    before = np.asarray(hidden(backbone(inputs(backbone))))
    head = keras.layers.Dense(2, activation="softmax")(hidden(backbone.output)[:, -1])
    classifier = keras.Model(backbone.input, head)
    classifier.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    classifier.fit(inputs(backbone), LABELS, epochs=2, verbose=0)
    change = float(np.abs(np.asarray(hidden(backbone(inputs(backbone)))) - before).max())
    return layers, factors, change


print(f"keras {keras.__version__}, keras-hub {keras_hub.__version__}; trained by LoRA,", end=" ")
print("and change of the output by training with a head")
found = {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for name in MODELS:
        layers, factors, change = found[name] = trained(name)
        print(f"{name}: {layers} layers, {factors} variables; {change:.3f}")
about = [str(one.message) for one in caught if "train" in str(one.message)]
print("warnings about training:", about or "none")
llama = found.pop("Llama")
sys.exit(llama[0] != 4 or llama[2] < 0.01 or any(any(one) for one in found.values()) or len(about) > 0)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
