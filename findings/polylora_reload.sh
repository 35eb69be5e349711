#!/bin/bash
# PolyLoRA: an adapter that is loaded again goes on answering as before, until a batch of others puts it out.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   polylora 0.1.1; a, which answered with the old one before, and b, which did not, are loaded again
#   a answers with the old one, b with the new one; after answers by two others, a with the new one
# Expected: after load_adapter_from_disk a name stands for what was loaded, as for a name that has not answered yet.
# Seen: `CpuAdapterStore.add_adapter` (store.py) replaces the weights, and the copy in the disk cache is replaced, too.
#   `GpuAdapterCache.ensure_resident` (cache.py) copies an adapter into its slot only if the name has none, and nothing
#   frees the slot. So an update comes into force at the time when max_gpu_adapters other names have answered.
# Affects servers that load retrained adapters while they run, also those of GLiNER (gliner 0.2.29, --enable-polylora):
#   the new one is reported as loaded, and answers at another time on each server. A new name for each version helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.24.0 peft==0.21.2 2> /dev/null
"$folder/venv/bin/pip" install --quiet --no-compile --no-deps polylora==0.1.1 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile
from importlib.metadata import version

import peft
import torch
from polylora import PolyLoraConfig, PolyLoraModel
from transformers import BertConfig, BertModel

torch.set_grad_enabled(False)
CONFIG = BertConfig(
    vocab_size=64, hidden_size=32, num_attention_heads=4, intermediate_size=48, num_hidden_layers=2
)
TARGETS, TEXT = ["query", "value"], torch.arange(1, 13)[None]


def new_base():
    torch.manual_seed(0)
    return BertModel(CONFIG).eval()


def save_adapter(folder, seed):
    """A trained adapter, and what it answers."""
    model = peft.get_peft_model(new_base(), peft.LoraConfig(r=4, target_modules=TARGETS)).eval()
    torch.manual_seed(seed)
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.2 * torch.randn_like(variable))
    model.save_pretrained(folder)
    return model(TEXT).last_hidden_state


def version_of(served, name):
    """Which version of an adapter a name answers with."""
    answer = served(input_ids=TEXT, adapter_ids=[name]).last_hidden_state
    return next((title for title, wanted in answers.items() if torch.allclose(answer, wanted, atol=1e-5)), "none")


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "adapter")
    served = PolyLoraModel(new_base(), PolyLoraConfig(2, 4, TARGETS, disk_cache_dir=os.path.join(folder, "cache")))
    answers = {"the old one": save_adapter(path, 1)}
    for name in "a", "b", "c", "d":
        served.load_adapter_from_disk(name, path)
    first = version_of(served, "a")
    answers["the new one"] = save_adapter(path, 2)
    for name in "a", "b":
        served.load_adapter_from_disk(name, path)
    found = [version_of(served, "a"), version_of(served, "b")]
    for name in "c", "d":
        version_of(served, name)
    found.append(version_of(served, "a"))
print(f"polylora {version('polylora')}; a, which answered with {first} before, and b, which did not, are loaded again")
print(f"a answers with {found[0]}, b with {found[1]}; after answers by two others, a with {found[2]}")
sys.exit([first, *found] != ["the old one", "the old one", "the new one", "the new one"])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
