#!/bin/bash
# PEFT: a model that merge_and_unload makes of a tuning of LayerNorms loses its trained head when it is saved.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2, transformers 5.23.0
#   LoRA: merging changes logits by 0.000, saving and loading the merged model by 0.000
#   IA3: merging changes logits by 0.000, saving and loading the merged model by 0.000
#   LayerNorms: merging changes logits by 0.000, saving and loading the merged model by 5.464
# Expected: merge_and_unload gives the base as a plain model (its docstring), whose file is read by from_pretrained.
# Seen: LNTuningModel has a copy of this method of its own, and it does not unpack modules_to_save, among them the head
#   that TaskType.SEQ_CLS adds. The model that comes back answers right, but its file has the head under the names
#   classifier.modules_to_save.default and classifier.original_module. Loading it makes a new head with random values;
#   transformers lists the names in a report, as it does for each first training, and there is no error.
# Affects classifiers with tuned LayerNorms that are merged and published. The saved adapter itself is complete.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.23.0 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import peft
import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification

SIZES = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
CONFIG = BertConfig(num_hidden_layers=2, initializer_range=0.3, **SIZES)
METHODS = {
    "LoRA": peft.LoraConfig(target_modules=["query", "value"], task_type="SEQ_CLS"),
    "IA3": peft.IA3Config(target_modules=["key", "value"], feedforward_modules=[], task_type="SEQ_CLS"),
    "LayerNorms": peft.LNTuningConfig(target_modules=["LayerNorm"], task_type="SEQ_CLS"),
}
TEXTS = torch.arange(32).reshape(4, 8)


@torch.no_grad()
def differences(config):
    """How much merging changes the logits, and how much loading the merged model from its file."""
    torch.manual_seed(0)
    model = peft.get_peft_model(BertForSequenceClassification(CONFIG), config).eval()
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.3 * torch.randn_like(variable))
    trained = model(TEXTS).logits
    merged = model.merge_and_unload()
    with tempfile.TemporaryDirectory() as folder:
        merged.save_pretrained(folder)
        again = BertForSequenceClassification.from_pretrained(folder).eval()
    return [float((found(TEXTS).logits - trained).abs().max()) for found in (merged, again)]


print(f"peft {peft.__version__}, transformers {transformers.__version__}")
for name, config in METHODS.items():
    merged, again = differences(config)
    print(f"{name}: merging changes logits by {merged:.3f}, saving and loading the merged model by {again:.3f}")
    if merged > 1e-4 or (again > 0.1) != (name == "LayerNorms"):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
