#!/bin/bash
# PEFT: the higher mitigation_lambda of reduce_intruder_dimension, the less is subtracted, against its description.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   peft 0.21.2; an intruder of size 5
#   mitigation_lambda=0.0: what is left of it -0.63
#   mitigation_lambda=0.25: what is left of it 1.35
#   mitigation_lambda=0.5: what is left of it 2.49
#   mitigation_lambda=0.75: what is left of it 3.74
#   mitigation_lambda=1.0: what is left of it 5.00
# Expected: mitigation_lambda is "the relative portion of the intruder dimensions that is subtracted"; "the higher the
#   value the more of the intruder dimension is subtracted", so 0 leaves the adapter as it is and 1 removes the
#   intruder.
# Seen: `reduce_intruder_dimension` (tuners/lora/intruders.py) adds (mitigation_lambda - 1) times the intruder, so the
#   value is the portion that stays. 1 changes nothing, 0 removes all, and the default of 0.75 subtracts a quarter.
# Affects whoever raises the value against forgetting, and gets less of it; and who sets 0 to turn it off.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 accelerate==1.15.0 \
  2> /dev/null
export OMP_NUM_THREADS=1
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import peft
import torch
from peft.tuners.lora.intruders import reduce_intruder_dimension

torch.set_grad_enabled(False)
VALUES = [0.0, 0.25, 0.5, 0.75, 1.0]


def new_model():
    """A layer with a LoRA of rank 1, whose direction is far from each of the base: an intruder of size 5."""
    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Linear(64, 64, bias=False))
    left, _, right = torch.linalg.svd(torch.randn(64, 64))
    base[0].weight.copy_(left @ torch.diag(torch.linspace(2, 0.1, 64)) @ right)
    model = peft.get_peft_model(base, peft.LoraConfig(r=1, lora_alpha=1, target_modules=["0"]))
    layer = model.base_model.model[0]
    left, right = (torch.nn.functional.normalize(torch.randn(64), dim=0) for _ in range(2))
    layer.lora_B["default"].weight.copy_(5 * left[:, None])
    layer.lora_A["default"].weight.copy_(right[None])
    return model, layer, left, right


print(f"peft {version('peft')}; an intruder of size 5")
left = []
for value in VALUES:
    model, layer, one, other = new_model()
    lines = []
    reduce_intruder_dimension(model, mitigation_lambda=value, logging_sink=lines.append)
    assert "Intruders: 1" in lines[0], lines
    left.append(float(one @ layer.get_delta_weight("intruder_reduced") @ other))
    print(f"mitigation_lambda={value}: what is left of it {left[-1]:.2f}")
sys.exit(not (left == sorted(left) and left[0] < 1.5 and abs(left[-1] - 5) < 0.01))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
