#!/bin/bash
# ms-swift: LLaMA-Pro also trains layers of the base, whose numbers begin like that of a new layer, and keeps them.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   ms-swift 4.6.0, transformers 5.19.0; a Llama with 24 layers
#   4 new blocks: 4 layers are trained, 4 are saved, of the base []; without the adapter the base has moved by 0% of the
#     effect
#   6 new blocks: 6 layers are trained, 6 are saved, of the base []; without the adapter the base has moved by 0% of the
#     effect
#   8 new blocks: 9 layers are trained, 9 are saved, of the base [30]; without the adapter the base has moved by 80% of
#     the effect
#   12 new blocks: 18 layers are trained, 18 are saved, of the base [21, 22, 24, 25, 27, 28]; without the adapter the
#     base has moved by 99% of the effect
# Expected: LLaMA-Pro (Wu et al. 2024) puts new layers between those of the model, which begin as the identity, and
#   trains them alone; "all the remaining blocks" are frozen. Without its adapter the model is the base as it was.
# Seen: `mark_trainable_callback` and `state_dict_callback` (tuners/llamapro.py) take each parameter whose name contains
#   "model.layers.N" for a new layer N, without the dot after N. So if layer 2 is new, layers 20 to 29 are trained, too.
#   They are saved with the adapter, and loading it overwrites the base's. They belong to the base also when the adapter
#   is switched off. There is no message. It depends on the number of layers and of new blocks: none is taken with 4 or
#   6 blocks for 24 layers, the last layer of the base with 8, and six of its layers with 12.
# Affects LLaMA-Pro with many blocks: more is trained than the new layers, so that the base forgets what the method is
#   made to keep, and the base that a process holds is changed for all other uses.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.19.0 peft==0.18.1 modelscope==1.40.2 \
  ms-swift==4.6.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import copy
import logging
import os
import sys
import tempfile
from importlib.metadata import version

import torch
import transformers

logging.disable(logging.CRITICAL)
from safetensors.torch import load_file
from swift.tuners import LLaMAProConfig, Swift

LAYERS = 24
TOKENS = torch.arange(12)[None]
CONFIG = transformers.LlamaConfig(
    vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=LAYERS, num_attention_heads=2
)


def new_base():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(copy.deepcopy(CONFIG)).eval()


def answers(model):
    with torch.no_grad():
        return model(TOKENS).logits


def numbers(names):
    return {int(name.split("layers.")[1].split(".")[0]) for name in names if "layers." in name}


def show(blocks):
    """How many layers are new, trained, and saved, and how far the base moves in training."""
    base = answers(new_base())
    model = Swift.prepare_model(new_base(), LLaMAProConfig(model_type="llama", num_new_blocks=blocks))
    start = float((answers(model) - base).abs().max())
    stride = LAYERS // blocks
    new = {(stride + 1) * (block + 1) - 1 for block in range(blocks)}
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    optimizer = torch.optim.Adam(trained.values(), 0.01)
    for _ in range(5):
        optimizer.zero_grad()
        model(TOKENS, labels=TOKENS.flip(1)).loss.backward()
        optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = load_file(os.path.join(folder, "default", "adapter_model.safetensors"))
    tuned = answers(model)
    model.set_active_adapters([])
    moved = float((answers(model) - base).norm() / (tuned - base).norm())
    trained, saved = numbers(trained), numbers(saved)
    print(f"{blocks} new blocks: {len(trained)} layers are trained, {len(saved)} are saved,", end=" ")
    print(f"of the base {sorted(trained - new)}; without the adapter the base has moved by {moved:.0%} of the effect")
    return start < 1e-5 and trained >= new, trained == saved, len(trained - new), moved


print(f"ms-swift {version('ms-swift')}, transformers {transformers.__version__}; a Llama with {LAYERS} layers")
results = {blocks: show(blocks) for blocks in (4, 6, 8, 12)}
right = all(results[blocks][:2] == (True, True) for blocks in results)
right &= all(results[blocks][2] == 0 and results[blocks][3] < 1e-5 for blocks in (4, 6))
wrong = all(results[blocks][2] > 0 and results[blocks][3] > 0.05 for blocks in (8, 12))
sys.exit(not right or not wrong)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
