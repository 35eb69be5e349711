#!/bin/bash
# mergekit: an adapter that was trained again is merged in its old state, from --lora-merge-cache, without a message.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   mergekit 0.1.5, peft 0.21.2; distance from the old and the new adapter
#   merged: 0.000, 0.535
#   trained again and merged: 0.000, 0.535
#   with another cache: 0.535, 0.000
# Expected: a merge of BASE+ADAPTER uses the adapter as it is, or says that it does not. --lora-merge-cache is
#   described as "Path to store merged LORA models", --lora-merge-dtype as "Override dtype when applying LoRAs".
# Seen: `ModelReference.merged` (mergekit/common.py) looks for a folder in the cache whose name is made of the two
#   paths, and takes what is there. Neither the time or the contents of the files nor --lora-merge-dtype matter, nor the
#   commit where no revision is given. A cache is needed: without it, models with an adapter are refused.
# Affects experiments that train into one folder and merge by one script, and sweeps that replace the base. Each merge
#   after the first one is of the first adapter. A cache folder for each run helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 mergekit==0.1.5 peft==0.21.2 transformers==5.24.0 \
  2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

import peft
import torch
import transformers

torch.set_grad_enabled(False)
CONFIG = transformers.LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4
)
TOKENS = torch.arange(12)[None]
load = transformers.AutoModelForCausalLM.from_pretrained


def save_adapter(base, path, seed):
    """Trains an adapter, saves it, and gives the answers of the model with it."""
    model = peft.get_peft_model(load(base), peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    torch.manual_seed(seed)
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.5 * torch.randn_like(variable))
    model.save_pretrained(path)
    return model(TOKENS).logits


def merged(base, adapter, cache):
    """The answers of the model that mergekit makes of the base and the adapter."""
    with tempfile.TemporaryDirectory() as folder:
        config, out = os.path.join(folder, "config.yaml"), os.path.join(folder, "out")
        model = {"model": f"{base}+{adapter}", "parameters": {"weight": 1.0}}
        with open(config, "w") as file:
            json.dump({"merge_method": "linear", "dtype": "float32", "models": [model]}, file)
        command = os.path.join(os.path.dirname(sys.executable), "mergekit-yaml")
        command = [command, config, out, "--lora-merge-cache", cache, "--no-copy-tokenizer"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return load(out)(TOKENS).logits


def difference(one, other):
    return float((one - other).abs().max())


with tempfile.TemporaryDirectory() as folder:
    base, adapter, cache = (os.path.join(folder, name) for name in ("base", "adapter", "cache"))
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(CONFIG).save_pretrained(base)
    old = save_adapter(base, adapter, 1)
    first = merged(base, adapter, cache)
    new = save_adapter(base, adapter, 2)
    again, fresh = merged(base, adapter, cache), merged(base, adapter, cache + "2")
print(f"mergekit {version('mergekit')}, peft {peft.__version__}; distance from the old and the new adapter")
found = []
for title, answers in {"merged": first, "trained again and merged": again, "with another cache": fresh}.items():
    found.append([difference(answers, old), difference(answers, new)])
    print(title + ": {:.3f}, {:.3f}".format(*found[-1]))
sys.exit([[value > 0.01 for value in pair] for pair in found] != [[False, True], [False, True], [True, False]])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
