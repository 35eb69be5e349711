#!/bin/bash
# PEFT: a second TinyLoRA adapter with other target modules gets other projections, if these are not in the file.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   peft 0.21.2, transformers 5.22.2; differences in percent of the effect
#   save_projection=True
#     trained apart, loaded in one model: first 0%, second 0%
#     trained apart, loaded in one model: second 0%, first 0%
#     trained in one model, second loaded alone: 0%
#   save_projection=False
#     trained apart, loaded in one model: first 0%, second 63%
#     trained apart, loaded in one model: second 0%, first 87%
#     trained in one model, second loaded alone: 87%
# Expected: 0%. With save_projection=False the projections are made again from projection_seed; the warning on loading
#   speaks of other systems, where random numbers might differ. All of this runs in one process.
# Seen: the seed of a layer is projection_seed and the number of the layer among the target modules (tuners/tinylora/
#   layer.py). That number is set once, when the first adapter of the layer is made, and later adapters use it, though
#   the layer has another number among their own modules. So an adapter depends on which one was there before it.
# Affects TinyLoRA adapters with save_projection=False, which keeps files tiny, and different target modules in one
#   model. Adapters with the same target modules, and files with projections, are right.
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
import warnings
from importlib.metadata import version

import peft
import torch
import transformers

warnings.simplefilter("ignore")
CONFIG = transformers.LlamaConfig(
    vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
)
TOKENS = torch.arange(12)[None]
TARGETS = {"first": ["q_proj", "v_proj"], "second": ["v_proj", "down_proj"]}


def new_base():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(CONFIG).eval()


def new_config(name, save_projection):
    return peft.TinyLoraConfig(r=2, u=8, target_modules=TARGETS[name], save_projection=save_projection)


def train(model):
    optimizer = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], lr=0.05)
    for _ in range(5):
        model(TOKENS, labels=TOKENS).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@torch.no_grad()
def answers(model):
    return model(TOKENS).logits


def difference(found, wanted):
    return float((found - wanted).norm() / (wanted - BASE).norm())


def loaded(folder, names):
    """The answers of each adapter of a model that they were loaded into, one after the other."""
    model = None
    for name in names:
        if model is None:
            model = peft.PeftModel.from_pretrained(new_base(), os.path.join(folder, name), adapter_name=name)
        else:
            model.load_adapter(os.path.join(folder, name), name)
    found = {}
    for name in names:
        model.set_adapter(name)
        found[name] = answers(model)
    return found


BASE = answers(new_base())
print(f"peft {version('peft')}, transformers {transformers.__version__}; differences in percent of the effect")
failed = False
for save_projection in True, False:
    print(f"save_projection={save_projection}")
    with tempfile.TemporaryDirectory() as folder:
        wanted = {}
        for name in TARGETS:
            model = train(peft.get_peft_model(new_base(), new_config(name, save_projection)))
            wanted[name] = answers(model)
            model.save_pretrained(os.path.join(folder, name))
        for names in ["first", "second"], ["second", "first"]:
            found = loaded(folder, names)
            shown = [difference(found[name], wanted[name]) for name in names]
            print("  trained apart, loaded in one model:", end=" ")
            print(", ".join(f"{name} {100 * value:.0f}%" for name, value in zip(names, shown)))
            failed |= [value > 0.1 for value in shown] != [False, not save_projection]
    with tempfile.TemporaryDirectory() as folder:
        model = train(peft.get_peft_model(new_base(), new_config("first", save_projection), adapter_name="first"))
        model.add_adapter("second", new_config("second", save_projection))
        model.set_adapter("second")
        tuned = answers(train(model))
        model.save_pretrained(folder)
        value = difference(loaded(folder, ["second"])["second"], tuned)
        print(f"  trained in one model, second loaded alone: {100 * value:.0f}%")
        failed |= (value > 0.1) != (not save_projection)
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
