#!/bin/bash
# PEFT: HRA with apply_GS=True is not a number from the first step on.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   apply_GS=False: loss 1.10
#   apply_GS=True: loss nan
#   apply_GS=True, init_weights=False: loss 1.10
# Expected: a new adapter changes nothing, so the loss is that of the base.
# Seen: at the start, the reflections are pairs of equal vectors, which cancel each other. The Gram-Schmidt process
#   subtracts the first vector of a pair from the second one and divides the rest, zero, by its norm.
# Affects whoever uses the orthogonal variant of HRA. It trains only with init_weights=False, from a random start.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import math
import sys

import peft
import torch
from transformers import BertConfig, BertForSequenceClassification


def loss(**options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    base = BertForSequenceClassification(BertConfig(num_hidden_layers=2, num_labels=3, **sizes))
    config = peft.HRAConfig(r=4, target_modules=["query", "value"], task_type="SEQ_CLS", **options)
    model = peft.get_peft_model(base, config)
    rows = torch.tensor([[2, 5, 3], [2, 7, 3]])
    return float(model(input_ids=rows, labels=torch.tensor([0, 1])).loss)


print(f"peft {peft.__version__}")
print(f"apply_GS=False: loss {(plain := loss()):.2f}")
print(f"apply_GS=True: loss {(default := loss(apply_GS=True)):.2f}")
print(f"apply_GS=True, init_weights=False: loss {(random := loss(apply_GS=True, init_weights=False)):.2f}")
sys.exit(not math.isnan(default) or math.isnan(plain) or math.isnan(random))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
