#!/bin/bash
# transformers: set_adapter and enable_adapters leave the classifier of another adapter in place.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   transformers 5.22.2, peft 0.21.2
#   first adapter after another was trained: difference 0.2219; with PeftModel 0.0000
#   after disable_adapters and enable_adapters: difference 0.5551
# Expected: each adapter answers with the head that was trained with it (modules_to_save), as with PEFT's own class.
# Seen: after set_adapter, the encoder has the adapter that was asked for and the head stays that of the one before.
#   After disable_adapters and enable_adapters, the head is the base's, which was never trained. There is no message.
# Affects whoever switches between tasks on one base with transformers' methods. PeftModel.set_adapter is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import peft
import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification

CONFIG = peft.LoraConfig(r=4, target_modules=["query", "value"], modules_to_save=["classifier"])


def base():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    return BertForSequenceClassification(BertConfig(num_hidden_layers=2, num_labels=3, **sizes))


def logits(model):
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor([[2, 5, 3]])).logits


def train(model):
    """Stands for training; returns the logits."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.3 * torch.randn_like(weight))
    return logits(model)


def after_second(model, first, add):
    """Adds and trains a second adapter, and returns how much the logits of the first change."""
    add("second")
    model.set_adapter("second")
    train(model)
    model.set_adapter("first")
    return float((logits(model) - first).abs().max())


print(f"transformers {transformers.__version__}, peft {peft.__version__}")

wrapped = peft.get_peft_model(base(), CONFIG, adapter_name="first")
right = after_second(wrapped, train(wrapped), lambda name: wrapped.add_adapter(name, CONFIG))

model = base()
model.add_adapter(CONFIG, "first")
first = train(model)
model.disable_adapters()
model.enable_adapters()
enabled = float((logits(model) - first).abs().max())

model = base()
model.add_adapter(CONFIG, "first")
changed = after_second(model, train(model), lambda name: model.add_adapter(CONFIG, name))

print(f"first adapter after another was trained: difference {changed:.4f}; with PeftModel {right:.4f}")
print(f"after disable_adapters and enable_adapters: difference {enabled:.4f}")
sys.exit(changed < 1e-3 or enabled < 1e-3 or right > 1e-5)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
