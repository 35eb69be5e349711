#!/bin/bash
# PEFT: convert_to_lora turns DoRA, and LoRA with a bias, into a LoRA that computes something else.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   LoRA: supported True, difference 0.0000
#   LoHa: supported True, difference 0.0000
#   VeRA: supported True, difference 0.0000
#   DoRA: supported True, difference 0.1838
#   lora_bias: supported True, difference 0.0725
# Expected: with the full rank, a converted adapter computes the same, or the method is refused, as (IA)^3 is.
# Seen: of DoRA, the magnitudes are dropped, and of lora_bias the biases. supports_lora_conversion says True for both.
#   The only warning is that a LoRA needs no conversion.
# Affects whoever converts adapters for a server that takes only LoRA. The difference shows in the results alone.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import peft
import torch
from transformers import BertConfig, BertModel

RIGHT = {"LoRA": peft.LoraConfig, "LoHa": peft.LoHaConfig, "VeRA": peft.VeraConfig}
WRONG = {"DoRA": {"use_dora": True}, "lora_bias": {"lora_bias": True}}
TARGETS = ["query", "value"]
HIDDEN = 16


def base():
    torch.manual_seed(0)
    sizes = {"num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    return BertModel(BertConfig(hidden_size=HIDDEN, num_hidden_layers=2, **sizes)).eval()


def output(model):
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor([[2, 5, 3]])).last_hidden_state


def converted(config):
    model = peft.get_peft_model(base(), config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.2 * torch.randn_like(weight))
    supported = model.supports_lora_conversion()
    config, weights = peft.convert_to_lora(model, rank=HIDDEN)
    lora = peft.get_peft_model(base(), config)
    peft.set_peft_model_state_dict(lora, weights)
    return supported, float((output(lora) - output(model)).abs().max())


print(f"peft {peft.__version__}")
cases = {name: kind(r=4, target_modules=TARGETS) for name, kind in RIGHT.items()}
cases |= {name: peft.LoraConfig(r=4, target_modules=TARGETS, **more) for name, more in WRONG.items()}
for name, config in cases.items():
    supported, difference = converted(config)
    print(f"{name}: supported {supported}, difference {difference:.4f}")
    if not supported or (difference > 1e-4) != (name in WRONG):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
