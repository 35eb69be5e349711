#!/bin/bash
# PEFT: add_weighted_adapter is wrong for LoRA with use_rslora, with a bias and with DoRA.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   difference of 1 x first + 0 x second and first: plain 0.0000, rank_pattern 0.0000, alpha_pattern 0.0000,
#   use_rslora 0.4400, lora_bias 0.1112, use_dora 0.0418
# Expected: the sum of an adapter with the weight 1 and another with the weight 0 is the first one, here by
#   combination_type="cat", which is exact.
# Seen: the sum inherits use_rslora and its scale becomes alpha / sqrt(rank), but its alpha is that of alpha / rank: with
#   "cat" it is too large by the square root of the new rank. Other combinations are wrong by other factors. Biases
#   (lora_bias) and the magnitudes of DoRA are those of a new adapter. There is no message.
# Affects whoever merges adapters. rank_pattern and alpha_pattern are right.
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

RIGHT = {
    "plain": {},
    "rank_pattern": {"rank_pattern": {"value": 2}},
    "alpha_pattern": {"alpha_pattern": {"query": 16}},
}
WRONG = {
    "use_rslora": {"use_rslora": True},
    "lora_bias": {"lora_bias": True},
    "use_dora": {"use_dora": True},
}


def output(model):
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor([[2, 5, 3]])).last_hidden_state


def difference(options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    base = BertModel(BertConfig(num_hidden_layers=2, **sizes))
    config = peft.LoraConfig(r=4, target_modules=["query", "value"], **options)
    model = peft.get_peft_model(base, config, adapter_name="first")
    model.add_adapter("second", config)
    for name in ("second", "first"):
        model.set_adapter(name)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.requires_grad:
                    weight.add_(0.2 * torch.randn_like(weight))
    first = output(model)
    model.add_weighted_adapter(["first", "second"], [1.0, 0.0], "sum", combination_type="cat")
    model.set_adapter("sum")
    return float((output(model) - first).abs().max())


print(f"peft {peft.__version__}")
for name, options in (RIGHT | WRONG).items():
    found = difference(options)
    print(f"{name}: difference of 1 x first + 0 x second and first: {found:.4f}")
    if (found > 1e-4) != (name in WRONG):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
