#!/bin/bash
# PEFT: adapters of an nn.TransformerEncoder act in training, and are left out in evaluation.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   torch 2.13.0+cpu, peft 0.21.2
#   LoRA: change 3.23 in training, 0.00 in evaluation, 3.23 when merged
#   LoRA of self_attn: change 4.37 in training, 0.00 in evaluation, 4.37 when merged
#   LoHa: change 1.80 in training, 0.00 in evaluation, 1.80 when merged
#   OFT: change 0.80 in training, 0.00 in evaluation, 0.80 when merged
#   IA3: change 0.34 in training, 0.00 in evaluation, 0.34 when merged
# Expected: model.eval() turns off dropout, which is 0 here, so the answers stay those of training.
# Seen: in evaluation nn.TransformerEncoderLayer calls one kernel with the weights of its parts (its fast path). A part
#   with an adapter passes for a layer and gives the weight of the base. So the model answers as if it had no adapter,
#   with and without torch.no_grad. huggingface/peft#2335 made this run, where there had been an error before.
# Affects models of PyTorch's own encoder layers with batch_first, with any method: the loss of training falls, that of
#   validation stays. Right are torch.backends.mha.set_fastpath_enabled(False) and a merged model.
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

LINEAR = {"target_modules": ["linear1", "linear2"]}
METHODS = {
    "LoRA": peft.LoraConfig(r=4, **LINEAR),
    "LoRA of self_attn": peft.LoraConfig(r=4, target_modules=["self_attn"]),
    "LoHa": peft.LoHaConfig(r=4, **LINEAR),
    "OFT": peft.OFTConfig(oft_block_size=4, **LINEAR),
    "IA3": peft.IA3Config(feedforward_modules=[], **LINEAR),
}


@torch.no_grad()
def changes(config):
    """How much an adapter changes the answers of its base: in training, in evaluation, there without the fast path."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    base, rows = nn.Sequential(nn.TransformerEncoder(layer, 2)).eval(), torch.randn(4, 5, 16)
    plain = base(rows)
    model = peft.get_peft_model(base, config)
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.3 * torch.randn_like(variable))
    found = [model.train()(rows), model.eval()(rows)]
    torch.backends.mha.set_fastpath_enabled(False)
    found.append(model(rows))
    torch.backends.mha.set_fastpath_enabled(True)
    found.append(model.merge_and_unload()(rows))
    return [float((answer - plain).abs().max()) for answer in found]


print(f"torch {torch.__version__}, peft {peft.__version__}")
for name, config in METHODS.items():
    training, evaluation, slow, merged = changes(config)
    print(f"{name}: change {training:.2f} in training, {evaluation:.2f} in evaluation, {merged:.2f} when merged")
    if evaluation > 1e-4 or min(training, slow, merged) < 0.02 or abs(training - slow) + abs(training - merged) > 1e-3:
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
