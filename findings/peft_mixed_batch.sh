#!/bin/bash
# PEFT: a batch of several adapters takes one head for all rows with RoAd, and one adapter with other methods.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   LoRA: difference 0.0000 from each row's adapter, 0.5666 from the active adapter
#   RoAd: difference 0.9588 from each row's adapter, 0.0007 from the active adapter
#   IA3: difference 0.6429 from each row's adapter, 0.0000 from the active adapter
#   VeRA: difference 0.7720 from each row's adapter, 0.0000 from the active adapter
# Expected: model(..., adapter_names=[...]) answers each row with its adapter, or is refused, as with DoRA.
# Seen: RoAd computes the encoder by row, and the classifier (modules_to_save) of the active adapter answers for all.
#   (IA)^3, VeRA, LoHa, LoKr, OFT, BOFT and others drop adapter_names without a message: all rows get the active adapter.
# Affects servers that put rows of several classifiers into one batch. With LoRA the answers are right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import peft
import torch
from transformers import BertConfig, BertForSequenceClassification

COMMON = {"target_modules": ["query", "value"], "task_type": "SEQ_CLS"}
CASES = {
    "LoRA": peft.LoraConfig(r=4, **COMMON),
    "RoAd": peft.RoadConfig(group_size=8, **COMMON),
    "IA3": peft.IA3Config(feedforward_modules=[], **COMMON),
    "VeRA": peft.VeraConfig(r=4, **COMMON),
}
ROWS = torch.tensor([[2, 5, 3], [2, 7, 3]])


def change(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.3 * torch.randn(weight.shape, generator=generator))


def logits(model, **names):
    with torch.no_grad():
        return model.eval()(input_ids=ROWS, **names).logits


def differences(config):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    base = BertForSequenceClassification(BertConfig(num_hidden_layers=2, num_labels=3, **sizes))
    model = peft.get_peft_model(base, config, adapter_name="first")
    change(model, 1)
    first = logits(model)
    model.add_adapter("second", config)
    model.set_adapter("second")
    change(model, 2)
    second = logits(model)
    model.set_adapter("first")
    mixed = logits(model, adapter_names=["first", "second"])
    wanted = torch.stack([first[0], second[1]])
    return float((mixed - wanted).abs().max()), float((mixed - first).abs().max())


print(f"peft {peft.__version__}")
for name, config in CASES.items():
    by_row, by_active = differences(config)
    print(f"{name}: difference {by_row:.4f} from each row's adapter, {by_active:.4f} from the active adapter")
    if (by_row < 1e-5) != (name == "LoRA") or (by_active < 1e-5) != (name in ("IA3", "VeRA")):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
