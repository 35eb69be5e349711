#!/bin/bash
# PEFT: a second adapter with layer_replication replicates the replicated layers, and changes the first and the base.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   peft 0.21.2, transformers 5.22.2; differences in percent of the effect
#   layer_replication=None: 2 layers, first 0%; second loaded: 2 layers, first 0%, second 0%
#   layer_replication=[(0, 2), (0, 2)]: 4 layers, first 0%; second loaded: 4 layers, first 84%, second 0%
#   layer_replication=[(0, 1), (0, 2)]: 3 layers, first 0%; second loaded: 3 layers, first 62%, second 69%
# Expected: adapters that were trained apart answer the same when they are loaded into one model, as without
#   replication. Both have the same layer_replication.
# Seen: loading an adapter prepares the model for it, and `_prepare_model` (tuners/lora/model.py) replicates the layers
#   it finds, which are the replicated ones with the first adapter in them. The ranges then take other layers: the later
#   layers of the first adapter are replaced by copies of its earlier ones, and with ranges of unlike lengths also
#   layers of the base are lost, so that the second adapter is wrong too. The number of layers stays the same, and there
#   is no message.
# Affects load_adapter and add_adapter on a model that has an adapter with layer_replication.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 accelerate==1.15.0 \
  2> /dev/null
export OMP_NUM_THREADS=1
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile
from importlib.metadata import version

import peft
import torch
import transformers

TOKENS = torch.arange(12)[None]


def new_base():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    return transformers.LlamaForCausalLM(config).eval()


def train(seed, replication):
    base = new_base()
    torch.manual_seed(seed)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj", "down_proj"], layer_replication=replication)
    model = peft.get_peft_model(base, config)
    optimizer = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], lr=0.02)
    for _ in range(5):
        model(TOKENS, labels=TOKENS.roll(seed)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@torch.no_grad()
def answers(model):
    return model(TOKENS).logits


def difference(found, wanted):
    return float((found - wanted).norm() / (wanted - BASE).norm())


BASE = answers(new_base())
print(f"peft {version('peft')}, transformers {transformers.__version__}; differences in percent of the effect")
failed = False
for replication in None, [(0, 2), (0, 2)], [(0, 1), (0, 2)]:
    with tempfile.TemporaryDirectory() as folder:
        wanted = {}
        for seed, name in enumerate(("first", "second"), 1):
            model = train(seed, replication)
            wanted[name] = answers(model)
            model.save_pretrained(os.path.join(folder, name))
        model = peft.PeftModel.from_pretrained(new_base(), os.path.join(folder, "first"), adapter_name="first")
        shown = [difference(answers(model), wanted["first"])]
        layers = [len(model.base_model.model.model.layers)]
        model.load_adapter(os.path.join(folder, "second"), "second")
        layers.append(len(model.base_model.model.model.layers))
        for name in wanted:
            model.set_adapter(name)
            shown.append(difference(answers(model), wanted[name]))
        print(f"layer_replication={replication}: {layers[0]} layers, first {100 * shown[0]:.0f}%;", end=" ")
        print(f"second loaded: {layers[1]} layers, first {100 * shown[1]:.0f}%, second {100 * shown[2]:.0f}%")
        failed |= [value > 0.1 for value in shown] != [False, bool(replication), replication == [(0, 1), (0, 2)]]
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
