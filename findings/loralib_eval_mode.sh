#!/bin/bash
# loralib: an adapter that is loaded in evaluation mode is left out, and train() then subtracts it from the base.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   loralib 0.1.2; share of an adapter in what the model computes, 1 wanted
#   loaded, then eval(): 1.00
#   eval(), then loaded: 0.00; then train(): 0.00; then eval() again: 0.00
#   the second loaded in evaluation mode: 0.00, and 1.00 of the first
#   merge_weights=False: eval(), then loaded: 1.00
#   the base after 200 evaluations has moved by 0% of the adapter in float32, 7% in bfloat16
# Expected: load_state_dict of the factors gives a model with this adapter, in both modes, and the frozen weights stay
#   as they are.
# Seen: eval() adds the product of the factors to the weight, and train() subtracts it (`Linear.train` and its like in
#   layers.py), each time of the factors as they are then. If others were loaded in between, evaluation goes on with the
#   old ones, and train() subtracts what was never added: the base is damaged for good, and the adapter cancels out in
#   each evaluation from then on. In half precision, each pair of eval() and train() also rounds the base twice, so that
#   it drifts with the number of evaluations, and the saved factors belong to a base that nobody has. There is no
#   message. (microsoft/LoRA#190, open, is of whole checkpoints that are loaded in training mode.)
# Affects servers that change the adapter of a model in evaluation mode, models that are put into it before their
#   adapter is loaded, and long trainings in half precision with many evaluations. Calling train() before loading helps
#   with the first two, and merge_weights=False with all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 loralib==0.1.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import copy
import sys
from importlib.metadata import version

import loralib
import torch

SIZE, EVALUATIONS = 64, 200


def new_model(**options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(loralib.Linear(SIZE, SIZE, r=4, lora_alpha=4, **options))
    loralib.mark_only_lora_as_trainable(model)
    return model


def new_adapter(seed):
    torch.manual_seed(seed)
    return {"0.lora_A": torch.randn(4, SIZE) / 16, "0.lora_B": torch.randn(SIZE, 4) / 16}


def load(model, adapter):
    model.load_state_dict(adapter, strict=False)
    return model


@torch.no_grad()
def strength(model, base, adapter):
    """The share of the adapter in what the model computes beyond the base."""
    wanted = adapter["0.lora_B"] @ adapter["0.lora_A"]
    change = (model(torch.eye(SIZE)) - model[0].bias).T
    return float(((change - base) * wanted).sum() / wanted.square().sum())


@torch.no_grad()
def drift(dtype):
    """How far the frozen weight is from what it was, relative to the adapter, as its factors change."""
    model = new_model().to(dtype)
    load(model, new_adapter(1))
    before, after = model[0].weight.clone(), copy.deepcopy(model)
    for _ in range(EVALUATIONS):
        after[0].lora_B.add_(0.001 * torch.randn(SIZE, 4))
        after.eval()
        after.train()
    return float((after[0].weight - before).float().norm() / (after[0].lora_B @ after[0].lora_A).float().norm())


base = new_model()[0].weight.detach().clone()
first, second = new_adapter(1), new_adapter(2)
print(f"loralib {version('loralib')}; share of an adapter in what the model computes, 1 wanted")
results = [strength(load(new_model(), first).eval(), base, first)]
model = load(new_model().eval(), first)
results.append(strength(model, base, first))
model.train()
results += [strength(model, base, first), strength(model.eval(), base, first)]
other = load(load(new_model(), first).eval(), second)
results += [strength(other, base, first), strength(other, base, second)]
results.append(strength(load(new_model(merge_weights=False).eval(), first), base, first))
results = [round(one, 2) + 0.0 for one in results]
print(f"loaded, then eval(): {results[0]:.2f}")
print(f"eval(), then loaded: {results[1]:.2f}; then train(): {results[2]:.2f}; then eval() again: {results[3]:.2f}")
print(f"the second loaded in evaluation mode: {results[5]:.2f}, and {results[4]:.2f} of the first")
print(f"merge_weights=False: eval(), then loaded: {results[6]:.2f}")
drifts = [drift(dtype) for dtype in (torch.float32, torch.bfloat16)]
print(f"the base after {EVALUATIONS} evaluations has moved by {drifts[0]:.0%} of the adapter in float32,", end=" ")
print(f"{drifts[1]:.0%} in bfloat16")
sys.exit(results != [1, 0, 0, 0, 1, 0, 1] or drifts[0] > 0.001 or drifts[1] < 0.03)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
