#!/bin/bash
# PEFT: of adapters that are named by numbers, save_pretrained leaves out whole layers.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   adapters fold0, fold1, fold2: tensors in their files [18, 18, 18], reload differs by 0.0000
#   adapters 0, 1, 2: tensors in their files [10, 10, 10], reload differs by 1.8194
# Expected: any name that add_adapter takes, and files that give the adapter back.
# Seen: to leave out other adapters, `_filter_state_dict_for_adapter_name` (utils/save_and_load.py) drops each weight
#   with one of their names between two points, and layers have numbers there too: encoder.layer.1.attention. So saving
#   "0" next to "1" drops its layer 1. Nothing is said at saving, when the weights still exist; loading warns of missing
#   keys and takes new, untrained ones. huggingface/peft#3584, open, has it for names of modules such as "mlp".
# Affects one adapter per fold, per client or per label that is called by its number, with LoRA and all methods whose
#   weights have the adapter's name. Names such as "fold0" are right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import peft
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForSequenceClassification

SIZES = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
CONFIG = BertConfig(num_hidden_layers=4, initializer_range=0.3, **SIZES)
TEXTS = torch.arange(32).reshape(4, 8)


def base():
    torch.manual_seed(0)
    return BertForSequenceClassification(CONFIG).eval()


@torch.no_grad()
def saved(names):
    """The number of tensors in the file of each adapter, and the largest difference of the logits after loading it."""
    config = peft.LoraConfig(r=4, target_modules=["query", "value"], task_type="SEQ_CLS", init_lora_weights=False)
    model = peft.get_peft_model(base(), config, adapter_name=names[0])
    for name in names[1:]:
        model.add_adapter(name, config)
    model.eval()
    counts, errors = [], []
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for name in names:
            counts.append(len(load_file(f"{folder}/{name}/adapter_model.safetensors")))
            model.set_adapter(name)
            again = peft.PeftModel.from_pretrained(base(), f"{folder}/{name}").eval()
            errors.append(float((again(TEXTS).logits - model(TEXTS).logits).abs().max()))
    return counts, max(errors)


print(f"peft {peft.__version__}")
seen = {}
for names in (["fold0", "fold1", "fold2"], ["0", "1", "2"]):
    counts, error = saved(names)
    seen[names[0]] = set(counts), error > 0.01
    print(f"adapters {', '.join(names)}: tensors in their files {counts}, reload differs by {error:.4f}")
sys.exit(seen != {"fold0": ({18}, False), "0": ({10}, True)})
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
