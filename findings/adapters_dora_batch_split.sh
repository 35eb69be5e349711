#!/bin/bash
# adapters: in a batch of several DoRAs all rows get the magnitudes of the last one.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   LoRA, Parallel: error 0.0000 of the first adapter, 0.0000 of the last one
#   LoRA, BatchSplit: error 0.0000 of the first adapter, 0.0000 of the last one
#   DoRA, Parallel: error 0.0231 of the first adapter, 0.0000 of the last one
#   DoRA, BatchSplit: error 0.0231 of the first adapter, 0.0000 of the last one
# Expected: BatchSplit and Parallel give each row the answer of its adapter alone.
# Seen: the low-rank parts are those of the row's adapter, but the vector of magnitudes and the norm are taken from the
#   adapter that ran last. The rows of the last adapter are right.
# Affects whoever serves several DoRAs in one batch. Nothing is logged, and a test with one adapter does not see it.
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
from adapters.composition import BatchSplit, Parallel
from transformers import BertConfig

logging.disable(logging.CRITICAL)
SIZES = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48, "vocab_size": 40}
ROWS, NAMES = torch.arange(1, 25).reshape(4, 6), ["first", "last"]


@torch.no_grad()
def errors(**options):
    """The largest difference from the answers of one adapter alone, by adapter and block."""
    torch.manual_seed(0)
    model = adapters.BertAdapterModel(BertConfig(num_hidden_layers=2, **SIZES))
    for name in NAMES:
        model.add_adapter(name, config=adapters.LoRAConfig(**options))
        model.add_classification_head(name, num_labels=3)
        model.train_adapter(name)
        for variable in model.parameters():
            if variable.requires_grad:
                variable.add_(0.2 * torch.randn_like(variable))
    model.eval()
    alone = {}
    for name in NAMES:
        model.set_active_adapters(name)
        alone[name] = model(ROWS).logits
    model.set_active_adapters(Parallel(*NAMES))
    parallel = [answer.logits for answer in model(ROWS)]
    split = BatchSplit(*NAMES, batch_sizes=[2, 2])
    model.set_active_adapters(split)
    model.active_head = split
    shares = [answer.logits for answer in model(ROWS)]
    expected = [alone["first"][:2], alone["last"][2:]]
    return {
        "Parallel": [float((a - alone[n]).abs().max()) for a, n in zip(parallel, NAMES)],
        "BatchSplit": [float((a - e).abs().max()) for a, e in zip(shares, expected)],
    }


print(f"adapters {adapters.__version__}")
seen = {}
for name, options in {"LoRA": {}, "DoRA": {"use_dora": True}}.items():
    for block, (first, last) in errors(**options).items():
        seen[name, block] = first, last
        print(f"{name}, {block}: error {first:.4f} of the first adapter, {last:.4f} of the last one")
right = all(error < 1e-5 for (name, _), both in seen.items() for error in (both if name == "LoRA" else both[1:]))
sys.exit(not (right and min(seen["DoRA", block][0] for block in ("Parallel", "BatchSplit")) > 1e-3))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
