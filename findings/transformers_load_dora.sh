#!/bin/bash
# transformers: load_adapter loads a DoRA adapter without its magnitudes.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   transformers 5.22.2, peft 0.21.2
#   LoRA: load_adapter differs by 0.0000 from the model that was saved, PeftModel by 0.0000
#   DoRA: load_adapter differs by 0.0298 from the model that was saved, PeftModel by 0.0000
# Expected: model.load_adapter(folder) and PeftModel.from_pretrained(model, folder) compute the same.
# Seen: with use_dora, load_adapter leaves the magnitude vectors as they were initialized, from the base and the
#   new factors: it looks for them under another name. The report of the loading lists them as unexpected and
#   missing, as it lists a new head, and there is no error.
# Affects whoever loads DoRA adapters without PEFT's own class, also by way of pipelines and sentence-transformers.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import peft
import torch
import transformers
from transformers import BertConfig, BertModel


def base():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    return BertModel(BertConfig(num_hidden_layers=2, **sizes)).eval()


def output(model):
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor([[2, 5, 3]])).last_hidden_state


def differences(use_dora):
    config = peft.LoraConfig(r=4, target_modules=["query", "value"], use_dora=use_dora)
    model = peft.get_peft_model(base(), config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.2 * torch.randn_like(weight))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = base()
        loaded.load_adapter(folder)
        wrapped = peft.PeftModel.from_pretrained(base(), folder)
    return [float((output(one) - output(model)).abs().max()) for one in (loaded, wrapped)]


print(f"transformers {transformers.__version__}, peft {peft.__version__}")
for name, use_dora in (("LoRA", False), ("DoRA", True)):
    loaded, wrapped = differences(use_dora)
    print(f"{name}: load_adapter differs by {loaded:.4f} from the model that was saved, PeftModel by {wrapped:.4f}")
    if (loaded > 1e-4) != use_dora or wrapped > 1e-5:
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
