#!/bin/bash
# LyCORIS: a network with DyLoRA answers at random in evaluation, and merges a random rank.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   lycoris_lora 4.1.3
#   lora: 1 different answer of 40 calls in eval mode
#   dylora: 4 different answers of 40 calls in eval mode
#   dylora: 4 different models of 40 merges
# Expected: DyLoRA (Valipour et al. 2023) draws a rank for each step of training; a trained network is used at one rank.
# Seen: the forward pass draws a rank in every mode, and so does merge_to, which takes no rank.
# Affects whoever compares ranks, or serves a DyLoRA: metrics change from call to call. Add the product of the saved
#   lora_up and lora_down to the weights by hand, at the rank that is wanted.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 lycoris_lora==4.1.3 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import copy
import logging
import random
import sys
from importlib import metadata

import torch
from lycoris import LycorisNetwork, create_lycoris

logging.disable(logging.CRITICAL)
LycorisNetwork.apply_preset({"target_module": ["Linear"]})
CALLS, ROWS = 40, torch.ones(1, 16)


def build(algorithm):
    torch.manual_seed(0)
    random.seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(16, 8))
    network = create_lycoris(layer, 1.0, linear_dim=4, linear_alpha=4, algo=algorithm, block_size=1)
    network.apply_to()
    network.eval()
    with torch.no_grad():
        for variable in network.parameters():
            variable.add_(0.3 * torch.randn_like(variable))
    return layer.eval(), network


def different(answers):
    return len({round(float(answer.sum()), 4) for answer in answers})


@torch.no_grad()
def answers(algorithm):
    layer, _ = build(algorithm)
    return different(layer(ROWS) for _ in range(CALLS))


@torch.no_grad()
def merges():
    layer, network = build("dylora")
    network.restore()
    plain, results = copy.deepcopy(layer.state_dict()), []
    for _ in range(CALLS):
        layer.load_state_dict(plain)
        network.merge_to(1.0)
        results.append(layer(ROWS))
    return different(results)


print(f"lycoris_lora {metadata.version('lycoris_lora')}")
fixed, drawn, models = answers("lora"), answers("dylora"), merges()
print(f"lora: {fixed} different answer of {CALLS} calls in eval mode")
print(f"dylora: {drawn} different answers of {CALLS} calls in eval mode")
print(f"dylora: {models} different models of {CALLS} merges")
sys.exit(not (fixed == 1 and drawn > 1 and models > 1))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
