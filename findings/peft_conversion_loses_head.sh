#!/bin/bash
# PEFT: an adapter that is converted on saving loses its trained head.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   plain: 2 of 10 tensors are of the head; reload: works
#   converted: 0 of 8 tensors are of the head; reload: KeyError 'base_model.model.classifier.weight'
# Expected: save_pretrained(..., path_initial_model_for_weight_conversion=...) saves modules_to_save as they are.
# Seen: `subtract_mutated_init` (tuners/lora/model.py) returns lora_A and lora_B alone; without a message, undocumented.
# Affects classifiers with PiSSA, OLoRA, CorDA and LoRA-GA: the trained head is in no file.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import peft
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForSequenceClassification

SIZES = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}


def new_model():
    torch.manual_seed(0)
    return BertForSequenceClassification(BertConfig(num_hidden_layers=2, num_labels=3, **SIZES))


def reload(folder):
    try:
        peft.PeftModel.from_pretrained(new_model(), folder)
        return "works"
    except KeyError as error:
        return f"KeyError {error}"


print(f"peft {peft.__version__}")
config = peft.LoraConfig(r=4, init_lora_weights="pissa", task_type="SEQ_CLS")
model = peft.get_peft_model(new_model(), config)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(f"{folder}/start")
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # As training does, also in the head.
                parameter.add_(0.1)
    options = {"path_initial_model_for_weight_conversion": f"{folder}/start"}
    for name, heads in (("plain", 2), ("converted", 0)):
        path = f"{folder}/{name}"
        model.save_pretrained(path, **(options if name == "converted" else {}))
        tensors = load_file(f"{path}/adapter_model.safetensors")
        found = sum("classifier" in key for key in tensors)
        print(f"{name}: {found} of {len(tensors)} tensors are of the head; reload: {reload(path)}")
        if found != heads:
            sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
