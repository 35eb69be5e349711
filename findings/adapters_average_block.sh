#!/bin/bash
# adapters: the block `Average` divides by the number of adapters twice.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   seq_bn: difference of Average(a, a) and a: 0.3; with weights of sum 2: 0.0; average_adapter: 0.0
#   lora: difference of Average(a, a) and a: 0.1; with weights of sum 2: 0.0; average_adapter: 0.0
# Expected: Average("a", "a") computes what "a" computes.
# Seen: it adds half of what "a" adds, and with n adapters the n-th part. The weights have the sum 1 by default, and
#   torch.mean puts the weighted outputs together (`mean` in methods/bottleneck.py and methods/lora.py).
# Affects comparisons of ensembles of adapters. With n adapters, weights=[n * w, ...] and normalize_weights=False give
# the average. Averages of weights (`average_adapter`) are right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import adapters
import torch
from adapters.composition import Average
from transformers import BertConfig, BertModel

CONFIG = BertConfig(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=9
)


def output(model, setup):
    model.set_active_adapters(setup)
    with torch.no_grad():
        return model(torch.tensor([[2, 5, 3]])).last_hidden_state


def differences(method):
    torch.manual_seed(0)
    model = BertModel(CONFIG).eval()
    adapters.init(model)
    model.add_adapter("a", config=method)
    for name, weight in model.named_parameters():
        if ".adapters." in name or "loras." in name:
            torch.nn.init.normal_(weight, std=0.2)
    model.average_adapter("b", ["a"])
    doubled = Average("a", "a", weights=[1.0, 1.0], normalize_weights=False)
    alone = output(model, "a")
    setups = (Average("a", "a"), doubled, "b")
    return [float((output(model, setup) - alone).abs().max()) for setup in setups]


print(f"adapters {adapters.__version__}")
for method in ("seq_bn", "lora"):
    average, doubled, weights = differences(method)
    print(
        f"{method}: difference of Average(a, a) and a: {average:.1f}; "
        f"with weights of sum 2: {doubled:.1f}; average_adapter: {weights:.1f}"
    )
    if average < 0.05 or max(doubled, weights) > 1e-5:
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
