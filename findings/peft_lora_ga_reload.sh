#!/bin/bash
# PEFT: LoRA-GA that is saved and loaded again computes something else, without a message.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   init_lora_weights=True: reload differs by 0.0000
#   init_lora_weights=pissa: reload differs by 0.0000
#   init_lora_weights=lora_ga: reload differs by 1.0596
# Expected: PeftModel.from_pretrained computes what was saved. The README of examples/lora_ga_finetuning says that
#   save_pretrained embeds the changed weights of the base, and loads its adapter in this way.
# Seen: the file has LoRA alone. Loading changes the base again for PiSSA, but not for LoRA-GA, whose gradients are gone
#   (`lora_ga_init` in tuners/lora/layer.py). path_initial_model_for_weight_conversion with the adapter before training
#   is right.
# Affects all who share LoRA-GA or load it in another process.
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
from peft.tuners.lora import preprocess_loraga
from transformers import BertConfig, BertForSequenceClassification

SIZES = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
CONFIG = BertConfig(num_hidden_layers=2, initializer_range=0.3, **SIZES)
TEXTS = {"input_ids": torch.arange(32).reshape(4, 8), "attention_mask": torch.ones(4, 8)}


def new_model():
    torch.manual_seed(0)
    return BertForSequenceClassification(CONFIG).eval()


def difference(start):
    base = new_model()
    config = peft.LoraConfig(r=4, init_lora_weights=start, task_type="SEQ_CLS")
    if start == "lora_ga":
        config.lora_ga_config = peft.LoraGAConfig()
        step = TEXTS | {"labels": torch.tensor([0, 1, 1, 0])}
        preprocess_loraga(base, config, lambda: base(**step).loss.backward())
    model = peft.get_peft_model(base, config).eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = peft.PeftModel.from_pretrained(new_model(), folder).eval()
    with torch.no_grad():
        return float((again(**TEXTS).logits - model(**TEXTS).logits).abs().max())


print(f"peft {peft.__version__}")
for start in (True, "pissa", "lora_ga"):
    found = difference(start)
    print(f"init_lora_weights={start}: reload differs by {found:.4f}")
    if (found > 1e-3) != (start == "lora_ga"):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
