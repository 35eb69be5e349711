#!/bin/bash
# LyCORIS: merging a LoHa multiplies its change by alpha / rank twice.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   lycoris_lora 4.1.3
#   loha, alpha 4: the merged change is 1.00 of the applied one
#   loha, alpha 2: the merged change is 0.50 of the applied one
#   loha, alpha 1: the merged change is 0.25 of the applied one
#   lora, alpha 2: the merged change is 1.00 of the applied one
#   lokr, alpha 2: the merged change is 1.00 of the applied one
# Expected: a layer with a merged change answers as one with the change applied, which is what was trained.
# Seen: with LoHa of rank 4 that holds only if alpha is the rank. Training computes the product with alpha / rank; merging
#   takes this product, which has the factor, and multiplies it once more. merge_to and onfly_merge share the code.
# Affects whoever trains a LoHa with an alpha below the rank, as most do, and merges it: the model that is served has
#   learned less than the one that was measured. Merge with the weight rank / alpha until it is mended.
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


def share(algorithm, alpha):
    """The change of a layer's answers by a merged LyCORIS, relative to the applied one."""
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(16, 8))
    network = create_lycoris(layer, 1.0, linear_dim=4, linear_alpha=alpha, algo=algorithm)
    network.apply_to()
    with torch.no_grad():
        for variable in network.parameters():
            variable.add_(0.3 * torch.randn_like(variable))
        rows = torch.randn(5, 16)
        applied = layer(rows)
        network.restore()
        plain = layer(rows)
        network.merge_to(1.0)
        return float(((layer(rows) - plain) / (applied - plain)).median())


print(f"lycoris_lora {metadata.version('lycoris_lora')}")
seen = {}
for case in [("loha", 4), ("loha", 2), ("loha", 1), ("lora", 2), ("lokr", 2)]:
    seen[case] = round(share(*case), 2)
    print(f"{case[0]}, alpha {case[1]}: the merged change is {seen[case]:.2f} of the applied one")
sys.exit(list(seen.values()) != [1.0, 0.5, 0.25, 1.0, 1.0])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
