#!/bin/bash
# NNCF: a checkpoint of an NLS model loses the ranks that were chosen, and the loaded model computes something else.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   nncf 3.4.0, torch 2.13.0; differences from the model that was saved
#   rank 8 of 8: loaded 0.00, loaded and stripped 0.00, stripped 0.00, loaded and set again 0.00
#   rank 2 of 8: loaded 0.55, loaded and stripped 0.55, stripped 0.00, loaded and set again 0.00
# Expected: `get_config` and the state dict restore the compressed model, as they do for FQ_LORA and for the highest
#   rank. NLS trains adapters of an elastic rank, and the rank of each layer is chosen afterwards by set_active_rank.
# Seen: `set_active_rank` (torch/quantization/layers.py) sets a plain attribute of the quantizer. `get_config` writes
#   the specification that it was made with, where the rank is the highest, and the state dict has the whole adapters.
#   So the loaded model adds all ranks, also in what strip makes of it, without a message.
# Affects whoever searches the ranks, saves the best model, and loads it to export it. Setting the ranks again after
#   loading, or stripping before saving, gives the chosen model.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 torchao==0.18.0 nncf==3.4.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import contextlib
import logging
import os
import sys
import tempfile
from importlib.metadata import version

import nncf
import nncf.torch
import torch
from nncf.torch.function_hook.wrapper import get_hook_storage

nncf.set_log_level(logging.ERROR)
torch.manual_seed(0)
TOKENS = torch.arange(12)[None]
MODE = nncf.CompressWeightsMode.INT4_SYM


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.one, self.two = torch.nn.Embedding(32, 64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, tokens):
        return self.two(self.one(self.tokens(tokens)))


def set_ranks(model, rank):
    for _, quantizer in get_hook_storage(model).named_hooks():
        quantizer.set_active_rank(rank)


def difference(one, other):
    with torch.no_grad():
        return float((one(TOKENS) - other(TOKENS)).abs().max())


def loaded(model):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        torch.save({"config": nncf.torch.get_config(model), "weights": model.state_dict()}, path)
        checkpoint = torch.load(path, weights_only=False)
    model = nncf.torch.load_from_config(Model().eval(), checkpoint["config"])
    model.load_state_dict(checkpoint["weights"])
    return model


def in_place(model):
    return nncf.strip(model, strip_format=nncf.StripFormat.IN_PLACE, example_input=TOKENS)


with contextlib.redirect_stdout(sys.stderr):
    model = nncf.compress_weights(
        Model().eval(),
        mode=MODE,
        ratio=1.0,
        group_size=32,
        all_layers=True,
        compression_format=nncf.CompressionFormat.FQ_LORA_NLS,
        dataset=nncf.Dataset([TOKENS]),
        advanced_parameters=nncf.AdvancedCompressionParameters(lora_adapter_rank=8),
    )
for name, weight in model.named_parameters():
    if name.endswith(("lora_A", "lora_B")):
        torch.nn.init.normal_(weight, std=0.1)
print(f"nncf {version('nncf')}, torch {torch.__version__.split('+')[0]}; differences from the model that was saved")
failed = False
for rank in 8, 2:
    set_ranks(model, rank)
    again = loaded(model)
    found = [difference(again, model), difference(in_place(again), model), difference(in_place(model), model)]
    set_ranks(again, rank)
    found.append(difference(again, model))
    print(f"rank {rank} of 8: loaded {found[0]:.2f}, loaded and stripped {found[1]:.2f},", end=" ")
    print(f"stripped {found[2]:.2f}, loaded and set again {found[3]:.2f}")
    failed |= [value > 0.1 for value in found] != [rank == 2, rank == 2, False, False]
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
