#!/bin/bash
# PEFT: adapters of a convolution pad with zeros, whatever its padding_mode; HRA and BOFT also change the base by it.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   LoRA, circular edges: a new adapter changes answers by 0.000, merging by 6.344
#   LoHa, circular edges: a new adapter changes answers by 0.000, merging by 5.987
#   LoKr, circular edges: a new adapter changes answers by 0.000, merging by 8.049
#   HiRA, circular edges: a new adapter changes answers by 0.000, merging by 0.271
#   HRA, circular edges: a new adapter changes answers by 1.283, merging by 1.358
#   BOFT, circular edges: a new adapter changes answers by 1.283, merging by 1.454
#   IA3, circular edges: a new adapter changes answers by 0.000, merging by 0.000
# Expected: the change of a layer is a convolution of the same kind, as merging assumes; a new adapter changes nothing.
# Seen: with padding_mode="circular", "reflect" or "replicate", these methods compute their change with zeros around the
#   picture, so at the edges a merged model answers otherwise than the trained one. HRA and BOFT compute the layer too
#   by F.conv2d with zeros: there the base itself is another one, with an adapter that has learned nothing yet.
#   huggingface/peft#3697 reports it of LoRA alone, where a dilation is lost as well.
# Affects networks with circular or reflected edges: panoramas, weather, textures, audio. Nothing is said. IA3 is right.
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

TARGETS = {"target_modules": ["0"]}
METHODS = {
    "LoRA": peft.LoraConfig(r=4, **TARGETS),
    "LoHa": peft.LoHaConfig(r=4, **TARGETS),
    "LoKr": peft.LoKrConfig(r=2, **TARGETS),
    "HiRA": peft.HiraConfig(r=4, **TARGETS),
    "HRA": peft.HRAConfig(r=2, **TARGETS),
    "BOFT": peft.BOFTConfig(boft_block_size=4, **TARGETS),
    "IA3": peft.IA3Config(feedforward_modules=[], **TARGETS),
}


@torch.no_grad()
def differences(config, mode):
    """How much a new adapter changes the answers of its base, and how much merging changes those of a trained one."""
    torch.manual_seed(0)
    base = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1, padding_mode=mode)).eval()
    pictures = torch.randn(2, 8, 9, 9)
    plain = base(pictures)
    model = peft.get_peft_model(base, config).eval()
    start = float((model(pictures) - plain).abs().max())
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.3 * torch.randn_like(variable))
    trained = model(pictures)
    return start, float((model.merge_and_unload()(pictures) - trained).abs().max())


print(f"peft {peft.__version__}")
for name, config in METHODS.items():
    zeros, (start, merging) = differences(config, "zeros"), differences(config, "circular")
    print(f"{name}, circular edges: a new adapter changes answers by {start:.3f}, merging by {merging:.3f}")
    if max(zeros) > 1e-4 or (start > 0.1, merging > 0.1) != (name in ("HRA", "BOFT"), name != "IA3"):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
