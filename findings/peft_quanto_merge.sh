#!/bin/bash
# PEFT: merging an adapter into a base that optimum-quanto has quantized adds nothing, and the adapter is lost.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   peft 0.21.2, optimum-quanto 0.2.7
#   LoRA, base in float32: error of the base 50%, with the adapter 0.0%, merged 0.0%
#   LoRA, base in int8: error of the base 50%, with the adapter 0.0%, merged 50.0%
#   LoRA, base in int4: error of the base 50%, with the adapter 0.0%, merged 50.0%
#   LoRA, base in int8, safe_merge: error of the base 50%, with the adapter 0.0%, merged 50.0%
#   LoRA, base in int8, merge_adapter: error of the base 50%, with the adapter 0.0%, merged 50.0%
#   DoRA, base in int8: error of the base 50%, with the adapter 0.0%, merged 50.0%
# Expected: merge_and_unload gives the base with the adapter in it, or there is an error, as there is for methods that
#   PEFT knows and cannot merge. With a base in float32 the merged model answers as the adapter did.
# Seen: PEFT takes quanto's `QLinear` for an `nn.Linear`, which it is a subclass of, and training and answers are right.
#   `Linear.merge` (tuners/lora/layer.py) adds to `weight.data`. For a tensor of quanto that addition gives a new float
#   tensor, and the assignment to `.data` does not reach the quantized numbers, also with safe_merge=True. The layer
#   counts as merged, so that the adapter is left out of its answers. merge_and_unload then throws it away. There is no
#   message, and the folder of the result has the size that one expects.
# Affects whoever trains LoRA or DoRA on a base of quanto (as with diffusers, or with QuantoConfig of transformers) and
#   merges it to save or to serve it: the result is the base as it was. Merging into the float base and quantizing then
#   is right, and so is an adapter that stays beside the base.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.24.0 peft==0.21.2 accelerate==1.15.0 \
  optimum-quanto==0.2.7 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import peft
import torch
from optimum import quanto

INPUTS = torch.randn(6, 64, generator=torch.Generator().manual_seed(0))


def train(weights, **options):
    """A model of two layers whose adapter has learned to double its answers."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    if weights:
        quanto.quantize(model, weights=weights)
        quanto.freeze(model)
    wanted = 2 * model(INPUTS).detach()
    model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=["0", "2"], **options))
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], 0.01)
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(INPUTS), wanted).backward()
        optimizer.step()
    return model.eval(), wanted


def compare(title, weights, merge, **options):
    """How far the answers are from those that the adapter has learned, before and after it is merged."""
    model, wanted = train(weights, **options)
    with torch.no_grad():
        with model.disable_adapter():
            base = model(INPUTS)
        before = model(INPUTS)
        after = merge(model)(INPUTS)
    errors = [float((found - wanted).norm() / wanted.norm()) for found in (base, before, after)]
    moved = float((after - base).norm() / (before - base).norm())
    print(f"{title}: error of the base {errors[0]:.0%}, with the adapter {errors[1]:.1%}, merged {errors[2]:.1%}")
    return moved


def unload(model, **options):
    return model.merge_and_unload(**options)


def merge_adapter(model):
    model.merge_adapter()
    return model


print(f"peft {version('peft')}, optimum-quanto {version('optimum-quanto')}")
right = [compare("LoRA, base in float32", None, unload)]
wrong = [
    compare("LoRA, base in int8", quanto.qint8, unload),
    compare("LoRA, base in int4", quanto.qint4, unload),
    compare("LoRA, base in int8, safe_merge", quanto.qint8, lambda model: unload(model, safe_merge=True)),
    compare("LoRA, base in int8, merge_adapter", quanto.qint8, merge_adapter),
    compare("DoRA, base in int8", quanto.qint8, unload, use_dora=True),
]
sys.exit(not min(right) > 0.95 or not max(wrong) < 0.05)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
