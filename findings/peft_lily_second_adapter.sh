#!/bin/bash
# PEFT: a second Lily adapter of a model shares no weights, and computes something else when it is loaded alone.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   first: 832 trained weights; loaded alone: difference 0.0000
#   second: 1600 trained weights; loaded alone: difference 0.1453
# Expected: adapters of the same configuration have the same number of weights, and files that give the same results.
# Seen: Lily shares its B among all layers. This is done for the adapter that a model is made with, and left out by
#   add_adapter and load_adapter (the hook after the injection is called by the constructor alone). The files of
#   the second adapter hold a B for each layer. Loaded as the first adapter, all layers get the same one.
# Affects whoever trains several adapters in one model.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile

import peft
import torch
from transformers import BertConfig, BertModel

CONFIG = peft.LilyConfig(r=4, target_modules=["query", "value"])


def base():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    return BertModel(BertConfig(num_hidden_layers=4, **sizes)).eval()


def output(model):
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor([[2, 5, 3]])).last_hidden_state


def train(model):
    """Stands for training; returns the number of trained weights."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    with torch.no_grad():
        for weight in weights:
            weight.add_(0.3 * torch.randn_like(weight))
    return sum(weight.numel() for weight in weights)


print(f"peft {peft.__version__}")
model = peft.get_peft_model(base(), CONFIG, adapter_name="first")
found = {}
with tempfile.TemporaryDirectory() as folder:
    for name in ("first", "second"):
        if name == "second":
            model.add_adapter(name, CONFIG)
        model.set_adapter(name)
        count, wanted = train(model), output(model)
        model.save_pretrained(folder)
        alone = peft.PeftModel.from_pretrained(base(), os.path.join(folder, name))
        found[name] = float((output(alone) - wanted).abs().max())
        print(f"{name}: {count} trained weights; loaded alone: difference {found[name]:.4f}")
sys.exit(found["first"] > 1e-5 or found["second"] < 1e-3)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
