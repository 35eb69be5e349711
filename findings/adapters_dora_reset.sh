#!/bin/bash
# adapters: reset_adapter leaves a merged DoRA in the base.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   LoRA: merging changes a weight of the base by 0.170, after reset_adapter it differs by 0.000
#   DoRA: merging changes a weight of the base by 0.180, after reset_adapter it differs by 0.180
# Expected: reset_adapter undoes merge_adapter, as it does for LoRA.
# Seen: for DoRA it computes something and assigns it to no weight, and drops the copy that merging kept. Activating another
#   adapter resets first, so it runs on the changed base.
# Affects whoever merges a DoRA for evaluation and goes on: later adapters and a saved base are wrong, with no message. Keep
#   a copy of the base's weights.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys

import adapters
import torch
from transformers import BertConfig

logging.disable(logging.CRITICAL)
SIZES = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48, "vocab_size": 40}


@torch.no_grad()
def differences(**options):
    """By how much a weight of the base changes by merging, and differs after the reset."""
    torch.manual_seed(0)
    model = adapters.BertAdapterModel(BertConfig(num_hidden_layers=2, **SIZES))
    model.add_adapter("task", config=adapters.LoRAConfig(**options))
    model.train_adapter("task")
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.1 * torch.randn_like(variable))
    weight = model.bert.encoder.layer[0].attention.self.query.weight
    before = weight.detach().clone()
    model.eval().merge_adapter("task")
    merged = float((weight - before).abs().max())
    model.reset_adapter()
    return merged, float((weight - before).abs().max())


print(f"adapters {adapters.__version__}")
seen = {}
for name, options in {"LoRA": {}, "DoRA": {"use_dora": True}}.items():
    seen[name] = merged, reset = differences(**options)
    print(f"{name}: merging changes a weight of the base by {merged:.3f}, after reset_adapter it differs by {reset:.3f}")
(_, lora), (merged, dora) = seen.values()
sys.exit(not (lora < 1e-5 and dora == merged > 0.001))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
