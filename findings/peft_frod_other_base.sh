#!/bin/bash
# PEFT: a FRoD adapter that is saved with its projections computes something else on a base in bfloat16.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   VeRA: trained and rounded 0.009, loaded in float32 0.000, in bfloat16 0.008
#   FRoD without projections: trained and rounded 0.012, loaded in float32 0.000, in bfloat16 0.097
#   FRoD: trained and rounded 0.012, loaded in float32 0.000, in bfloat16 0.471
# Expected: an adapter on the rounded base computes nearly what it computed, as VeRA does. save_projection=True, the
#   default, makes reloading independent of what is computed again at that place, says the docstring of FrodConfig.
# Seen: of the factors of a weight, V is in the file, and U is not: loading makes U of the weight of the base and of a V
#   that is computed from this base, and then puts the file's V in the place of the latter. With a base of other last
#   digits, U and V belong to different decompositions. The error is many times that of the rounding, and larger than
#   without projections in the file, where at least both factors are new.
# Affects FRoD that is trained in float32 and served in bfloat16, or on a base that was saved in half precision.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import copy
import sys
import tempfile

import peft
import torch
from transformers import BertConfig, BertModel

SIZES = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 50}
CONFIG = BertConfig(num_hidden_layers=3, initializer_range=0.3, **SIZES)
TARGETS = {"target_modules": ["query", "value", "dense"]}
METHODS = {
    "VeRA": peft.VeraConfig(r=16, **TARGETS),
    "FRoD without projections": peft.FrodConfig(save_projection=False, progressbar=False, **TARGETS),
    "FRoD": peft.FrodConfig(progressbar=False, **TARGETS),
}
TEXTS = torch.arange(32).reshape(4, 8)


def base():
    torch.manual_seed(0)
    return BertModel(CONFIG, add_pooling_layer=False).eval()


@torch.no_grad()
def changes(config):
    """Mean change of the states by rounding the trained model, and by loading it into bases in two precisions."""
    model = peft.get_peft_model(base(), config).eval()
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.05 * torch.randn_like(variable))
    states = model(TEXTS).last_hidden_state
    found = [copy.deepcopy(model).to(torch.bfloat16)]
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for kind in (torch.float32, torch.bfloat16):
            found.append(peft.PeftModel.from_pretrained(base().to(kind), folder).eval())
    return [float((other(TEXTS).last_hidden_state - states).abs().mean()) for other in found]


print(f"peft {peft.__version__}")
seen = {name: changes(config) for name, config in METHODS.items()}
for name, (rounded, same, loaded) in seen.items():
    print(f"{name}: trained and rounded {rounded:.3f}, loaded in float32 {same:.3f}, in bfloat16 {loaded:.3f}")
right = max(same for _, same, _ in seen.values()) < 1e-3 and seen["VeRA"][2] < 2 * seen["VeRA"][0]
sys.exit(not (right and seen["FRoD"][2] > max(10 * seen["FRoD"][0], 2 * seen["FRoD without projections"][2])))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
