#!/bin/bash
# ms-swift: merge_and_unload of a model with two LoRAs merges the first alone, and the other is lost without a message.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   ms-swift 4.6.0, peft 0.18.1; a model with the LoRAs first and second
#   active: first; answers of: first; after merge_and_unload(): first; adapters left: no
#   active: second; answers of: second; after merge_and_unload(): first; adapters left: no
#   active: first and second; answers of: first and second; after merge_and_unload(): first; adapters left: no
#   active: first and second; answers of: first and second; after merge_and_unload(adapter_name='second'): second;
#     adapters left: no
# Expected: the docstring says "Merge tuners into the base model and unload them", and that adapter_name chooses some of
#   them. So the merged model answers as the active adapters did before; those that are not asked for stay, or there is
#   an error.
# Seen: `Swift.merge_and_unload` (tuners/base.py) calls `LoRA.unpatch_lora` (tuners/lora.py) for one adapter after the
#   other. The first call merges its adapter, and puts the base layer in the place of each LoRA layer, which also held
#   all the other adapters. The next call finds no layer. Nor does it look at what is active: the first adapter is
#   merged also if it was switched off and the second one was in use. `SwiftModel.adapters` still lists both.
# Affects models with several SwiftModel adapters (a domain and a task, or versions of one) that are merged for serving:
#   what is served is another adapter than the one that was tested. ms-swift 4.6.0 takes PEFT from 0.11 on; its LoRA
#   tuner does not start with PEFT 0.20. Keeping one adapter in the model, and merging that, is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.19.0 peft==0.18.1 modelscope==1.40.2 \
  ms-swift==4.6.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
from importlib.metadata import version

import torch

logging.disable(logging.CRITICAL)
from swift.tuners import LoRAConfig, Swift

INPUTS = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))


def new_model():
    """A model with the LoRAs first and second."""
    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    settings = {"r": 4, "target_modules": ["0", "2"]}
    model = Swift.prepare_model(base, {name: LoRAConfig(**settings) for name in ("first", "second")})
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return model.eval()


def answers(model, active=None):
    if active is not None:
        model.set_active_adapters(list(active))
    with torch.no_grad():
        return model(INPUTS)


def closest(found):
    """The state of the model that gives these answers."""
    model = new_model()
    states = {"the base": (), "first": ("first",), "second": ("second",), "first and second": ("first", "second")}
    errors = {name: float((answers(model, active) - found).abs().max()) for name, active in states.items()}
    name = min(errors, key=errors.get)
    return name if errors[name] < 1e-4 else "something else"


def show(active, options):
    model = new_model()
    before = closest(answers(model, active))
    Swift.merge_and_unload(model, **options)
    after = closest(answers(model))
    left = any("lora_" in name for name, _ in model.named_parameters())
    call = ", ".join(f"{name}={value!r}" for name, value in options.items())
    print(f"active: {' and '.join(active)}; answers of: {before}; after merge_and_unload({call}): {after};", end=" ")
    print(f"adapters left: {'yes' if left else 'no'}")
    return before, after, left


print(f"ms-swift {version('ms-swift')}, peft {version('peft')}; a model with the LoRAs first and second")
results = [
    show(("first",), {}),
    show(("second",), {}),
    show(("first", "second"), {}),
    show(("first", "second"), {"adapter_name": "second"}),
]
expected = [
    ("first", "first", False),
    ("second", "first", False),
    ("first and second", "first", False),
    ("first and second", "second", False),
]
sys.exit(results != expected)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
