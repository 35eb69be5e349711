#!/bin/bash
# adapters: a prompt that is loaded under another name gets random values.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   SeqBnConfig: loaded under its name 0.000, as "other" 0.000
#   LoRAConfig: loaded under its name 0.000, as "other" 0.000
#   PromptTuningConfig: loaded under its name 0.000, as "other" 0.074
# Expected: load_as changes the name of an adapter, and no answer.
# Seen: the names of a prompt's weights are not changed, so they match nothing, and the prompt keeps its random start. That
#   weights were not used is logged at the level INFO.
# Affects whoever loads two prompts of one name, such as two runs. Load them under the names they were saved with.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
import tempfile

import adapters
import torch
from transformers import BertConfig

logging.disable(logging.CRITICAL)
SIZES = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48, "vocab_size": 40}
ROWS = torch.arange(1, 25).reshape(4, 6)
CONFIGS = (adapters.SeqBnConfig(), adapters.LoRAConfig(), adapters.PromptTuningConfig(prompt_length=4))


def build():
    torch.manual_seed(0)
    return adapters.BertAdapterModel(BertConfig(num_hidden_layers=2, **SIZES)).eval()


@torch.no_grad()
def differences(config):
    """Of the logits after loading, under the same name and another one."""
    model = build()
    model.add_adapter("task", config=config)
    model.add_classification_head("task", num_labels=3)
    model.train_adapter("task")
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.1 * torch.randn_like(variable))
    expected, found = model.eval()(ROWS).logits, []
    with tempfile.TemporaryDirectory() as folder:
        model.save_adapter(folder, "task", with_head=True)
        for name in ("task", "other"):
            loaded = build()
            loaded.load_adapter(folder, load_as=name, set_active=True)
            found.append(float((loaded.eval()(ROWS).logits - expected).abs().max()))
    return found


print(f"adapters {adapters.__version__}")
seen = {}
for config in CONFIGS:
    name = type(config).__name__
    seen[name] = same, other = differences(config)
    print(f'{name}: loaded under its name {same:.3f}, as "other" {other:.3f}')
prompt = seen.pop("PromptTuningConfig")
sys.exit(not (max(map(max, seen.values())) < 1e-5 and prompt[0] < 1e-5 and prompt[1] > 0.01))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
