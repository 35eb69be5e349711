#!/bin/bash
# PEFT: two active OFT adapters act in the reverse order once they are merged, and with C3A neither order is right.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   LoRA: merging changes answers by 0.000, merging in the reverse order by 0.000
#   DoRA: merging changes answers by 0.000, merging in the reverse order by 0.884
#   BOFT: merging changes answers by 0.000, merging in the reverse order by 0.850
#   HRA: merging changes answers by 0.000, merging in the reverse order by 0.660
#   OFT: merging changes answers by 0.405, merging in the reverse order by 0.000
#   C3A: merging changes answers by 0.251, merging in the reverse order by 0.251
# Expected: merging changes no answers, also where the order of two adapters matters, as with DoRA, BOFT and HRA.
# Seen: OFT rotates the input of a layer, by the first adapter and then by the second. Merging multiplies the weight by
#   the first rotation and the product by the second, which rotates the input by the second one first. C3A gives the
#   second adapter the change by the first one as its input (`x` in the loop of tuners/c3a/layer.py); merging gives both
#   the input of the layer.
# Affects whoever combines OFT or C3A adapters with set_adapter([...]), and merges them to serve both. For OFT, merging
#   in the reverse order, merge_adapter(adapter_names=[...]), is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import peft
import torch
from torch import nn

COMMON = {"target_modules": ["0", "2"]}
METHODS = {
    "LoRA": peft.LoraConfig(r=4, **COMMON),
    "DoRA": peft.LoraConfig(r=4, use_dora=True, **COMMON),
    "BOFT": peft.BOFTConfig(boft_block_size=4, **COMMON),
    "HRA": peft.HRAConfig(r=4, **COMMON),
    "OFT": peft.OFTConfig(oft_block_size=4, **COMMON),
    "C3A": peft.C3AConfig(block_size=8, **COMMON),
}


@torch.no_grad()
def differences(config):
    """How much the answers of two active adapters change by merging, and by merging in the reverse order."""
    torch.manual_seed(0)
    base = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)).eval()
    rows, names = torch.randn(5, 16), ["first", "second"]
    model = peft.get_peft_model(base, config, adapter_name="first")
    model.add_adapter("second", config)
    model.base_model.set_adapter(names)
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.3 * torch.randn_like(variable))
    model.eval()
    answers = model(rows)
    found = []
    for order in (names, names[::-1]):
        model.merge_adapter(order)
        found.append(float((model(rows) - answers).abs().max()))
        model.unmerge_adapter()
    return found


print(f"peft {peft.__version__}")
wrong = {}
for name, config in METHODS.items():
    same, reverse = differences(config)
    print(f"{name}: merging changes answers by {same:.3f}, merging in the reverse order by {reverse:.3f}")
    wrong[name] = same > 0.01, reverse > 0.01
right = all(not wrong[name][0] for name in ("LoRA", "DoRA", "BOFT", "HRA"))
sys.exit(not (right and wrong["OFT"] == (True, False) and wrong["C3A"] == (True, True)))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
