#!/bin/bash
# LyCORIS: onfly_restore leaves the merged weights in the model on a CPU.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   lycoris_lora 4.1.3
#   lora: onfly_merge changes answers by 1.39, after onfly_restore by 1.39
#   lokr: onfly_merge changes answers by 1.16, after onfly_restore by 1.16
# Expected: the methods' names and the copy that onfly_merge takes say that the model answers as before.
# Seen: the copy is `weight.data.cpu()`, which on a CPU is no copy but the weight itself; merging writes into it.
# Affects whoever switches between changes on a CPU: each merge adds to the last one, and nothing says so. On a GPU the
#   same call does copy. Keep a copy of the base's state_dict, and load it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 lycoris_lora==4.1.3 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
from importlib import metadata

import torch
from lycoris import LycorisNetwork, create_lycoris

logging.disable(logging.CRITICAL)
LycorisNetwork.apply_preset({"target_module": ["Linear"]})


def changes(algorithm):
    """By how much answers change after onfly_merge, and after onfly_restore."""
    torch.manual_seed(0)
    layer, rows = torch.nn.Sequential(torch.nn.Linear(16, 8)), torch.randn(5, 16)
    network = create_lycoris(layer, 1.0, linear_dim=4, linear_alpha=4, algo=algorithm)
    network.apply_to()
    with torch.no_grad():
        for variable in network.parameters():
            variable.add_(0.3 * torch.randn_like(variable))
        network.restore()
        plain = layer(rows)
        network.onfly_merge()
        merged = layer(rows)
        network.onfly_restore()
        return [float((answers - plain).abs().max()) for answers in (merged, layer(rows))]


print(f"lycoris_lora {metadata.version('lycoris_lora')}")
same = []
for algorithm in ("lora", "lokr"):
    merged, restored = changes(algorithm)
    print(f"{algorithm}: onfly_merge changes answers by {merged:.2f}, after onfly_restore by {restored:.2f}")
    same.append(merged == restored > 0.1)
sys.exit(not all(same))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
