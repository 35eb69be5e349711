#!/bin/bash
# ms-swift: `with model.disable_adapter()` leaves all adapters active, also those that were switched off before.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   ms-swift 4.6.0, peft 0.20.0; two adapters, the first is active
#   PEFT: within the block the base answers: True; then active: first; answers moved by 0% of what the first adapter
#     does
#   ms-swift: within the block the base answers: True; then active: first, second; answers moved by 139% of what the
#     first adapter does
# Expected: after the block the model is as it was before. PEFT's context manager of the same name does that.
# Seen: `SwiftModel.disable_adapter` (tuners/base.py) ends with set_active_adapters of all adapters of the model, in the
#   place of those that were active. From the first use on, each text passes through every adapter. There is no message.
# Affects models with several adapters whose base is asked now and then, as for the reference of DPO or KL, or for
#   comparing an adapter with its base: the second time, and in all that follows, another model answers, and training
#   goes on with all the adapters. Calling set_active_adapters after each block helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.19.0 peft==0.20.0 modelscope==1.40.2 \
  ms-swift==4.6.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
from importlib.metadata import version

import peft
import torch

logging.disable(logging.CRITICAL)
from swift.tuners import AdapterConfig, Swift

TARGETS = ["0", "2"]
INPUTS = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))


def new_base():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 16))


def of_swift():
    config = AdapterConfig(dim=16, hidden_pos=0, adapter_length=2, target_modules=TARGETS)
    model = Swift.prepare_model(new_base(), {"first": config, "second": config})
    model.set_active_adapters("first")
    return model.eval()


def of_peft():
    config = peft.LoraConfig(r=2, target_modules=TARGETS, init_lora_weights=False)
    model = peft.get_peft_model(new_base(), config, "first")
    model.add_adapter("second", config)
    model.set_adapter("first")
    return model.eval()


def show(title, model):
    """Whether the base answers within the block, and how far the answers after it are from those before."""
    with torch.no_grad():
        base, before = new_base()(INPUTS), model(INPUTS)
        with model.disable_adapter():
            within = model(INPUTS)
        after = model(INPUTS)
    active = sorted(model.active_adapters)
    error = float((after - before).norm() / (before - base).norm())
    right = bool(torch.allclose(within, base, atol=1e-5))
    print(f"{title}: within the block the base answers: {right}; then active: {', '.join(active)};", end=" ")
    print(f"answers moved by {error:.0%} of what the first adapter does")
    return right, len(active), error


print(f"ms-swift {version('ms-swift')}, peft {version('peft')}; two adapters, the first is active")
right, wrong = show("PEFT", of_peft()), show("ms-swift", of_swift())
sys.exit(right != (True, 1, 0.0) or wrong[:2] != (True, 2) or wrong[2] < 0.1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
