#!/bin/bash
# adapters: DiReFT that was saved is loaded as NoReFT, which computes something else.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   LoReftConfig: logits differ by 0.000 after loading
#   NoReftConfig: logits differ by 0.000 after loading
#   DiReftConfig: logits differ by 0.448 after loading
#   saved configuration of DiReFT has subtract_projection: False
# Expected: an adapter that was saved and loaded answers as before.
# Seen: DiReFT differs from NoReFT in subtract_projection=False alone. Configurations are written without this field, and
#   reading gives it its default, True. All weights load, so nothing is logged.
# Affects whoever saves a DiReFT adapter: its scores cannot be repeated, also with the field added to the file. Save the
#   model's state_dict, and load it into a model to which the adapter was added with DiReftConfig().
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import json
import logging
import os
import sys
import tempfile

import adapters
import torch
from transformers import BertConfig

logging.disable(logging.CRITICAL)
SIZES = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48, "vocab_size": 40}
ROWS = torch.arange(1, 25).reshape(4, 6)


def build():
    torch.manual_seed(0)
    return adapters.BertAdapterModel(BertConfig(num_hidden_layers=2, **SIZES)).eval()


@torch.no_grad()
def saved_and_loaded(config):
    """The difference between the logits of both, and the saved configuration."""
    model = build()
    model.add_adapter("task", config=config)
    model.add_classification_head("task", num_labels=3)
    model.train_adapter("task")
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.2 * torch.randn_like(variable))
    expected = model.eval()(ROWS).logits
    with tempfile.TemporaryDirectory() as folder:
        model.save_adapter(folder, "task", with_head=True)
        with open(os.path.join(folder, "adapter_config.json")) as file:
            saved = json.load(file)["config"]
        loaded = build()
        loaded.load_adapter(folder, set_active=True)
        actual = loaded.eval()(ROWS).logits
    return float((actual - expected).abs().max()), saved


print(f"adapters {adapters.__version__}")
seen = {}
for config in (adapters.LoReftConfig(), adapters.NoReftConfig(), adapters.DiReftConfig()):
    name = type(config).__name__
    seen[name], saved = saved_and_loaded(config)
    print(f"{name}: logits differ by {seen[name]:.3f} after loading")
print(f"saved configuration of DiReFT has subtract_projection: {'subtract_projection' in saved}")
*same, other = seen.values()
sys.exit(not (max(same) < 1e-5 and other > 0.01))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
