#!/bin/bash
# PEFT: OFT mixes up the pixels before a convolution with a kernel above 1, already before training.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   BOFT, kernel 3: a new adapter changes answers by 0.000, merging by 0.000
#     one white pixel becomes 1, with the sum 1
#   OFT, kernel 1: a new adapter changes answers by 0.000, merging by 0.000
#     one white pixel becomes 1, with the sum 1
#   OFT, kernel 3: a new adapter changes answers by 5.370, merging by 5.445
#     one white pixel becomes 9, with the sum 9
# Expected: OFT starts as the identity (init_weights in its configuration), and merging changes no answers.
# Seen: to rotate patches, tuners/oft/layer.py cuts the picture into overlapping patches (`_unfold`) and puts them
#   together again (`_fold`). F.fold adds up what overlaps, which makes 9 of 1 with a kernel of 3, and it wants the
#   places in a patch before the patches: `_fold` gives them in the other order, so values land in other places.
#   Merging rotates the weights of the kernel, as the method says.
# Affects OFT on convolutions: the base is another network from the start, and what was trained is lost by merging. BOFT
#   on the same layer and OFT with a kernel of 1 are right.
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

OFT = peft.OFTConfig(oft_block_size=4, target_modules=["0"])
BOFT = peft.BOFTConfig(boft_block_size=4, target_modules=["0"])


def convolution(kernel):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(8, 8, kernel, padding=kernel // 2, bias=False)).eval()


@torch.no_grad()
def copies(config, kernel):
    """What a new adapter makes of one white pixel, before a convolution that copies its input: the sum, the places."""
    base = convolution(kernel)
    nn.init.dirac_(base[0].weight)
    picture = torch.zeros(1, 8, 9, 9)
    picture[0, 0, 4, 4] = 1
    found = peft.get_peft_model(base, config).eval()(picture)
    return round(float(found.sum())), int((found > 0.5).sum())


@torch.no_grad()
def differences(config, kernel):
    """How much a new adapter changes the answers of its base, and how much merging changes those of a trained one."""
    base, pictures = convolution(kernel), torch.randn(2, 8, 9, 9)
    plain = base(pictures)
    model = peft.get_peft_model(base, config).eval()
    start = float((model(pictures) - plain).abs().max())
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.1 * torch.randn_like(variable))
    trained = model(pictures)
    return start, float((model.merge_and_unload()(pictures) - trained).abs().max())


print(f"peft {peft.__version__}")
for name, config, kernel in [("BOFT", BOFT, 3), ("OFT", OFT, 1), ("OFT", OFT, 3)]:
    start, merging = differences(config, kernel)
    total, places = copies(config, kernel)
    print(f"{name}, kernel {kernel}: a new adapter changes answers by {start:.3f}, merging by {merging:.3f}")
    print(f"  one white pixel becomes {places}, with the sum {total}")
    wrong = name == "OFT" and kernel > 1
    if (min(start, merging) < 0.5 or total != kernel**2) if wrong else (max(start, merging) > 1e-4 or total != 1):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
