#!/bin/bash
# PEFT: hotswap_adapter ignores rank_pattern and alpha_pattern.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   plain: difference 0.0000
#   use_rslora: difference 0.0000
#   rank_pattern: difference 0.0013
#   alpha_pattern: difference 0.0094
# Expected: an adapter that is swapped in computes what it computes when it is loaded. Here each adapter is swapped
#   with itself, so nothing may change.
# Seen: with rank_pattern or alpha_pattern the scale of all layers is lora_alpha / r of the configuration. The patterns
#   are compared with the name of a weight, which ends with lora_A.default.weight, and match no module.
# Affects servers that change adapters in place. Loading the adapter under a new name is right.
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
from peft.utils.hotswap import hotswap_adapter
from transformers import BertConfig, BertModel

CASES = {
    "plain": {},
    "use_rslora": {"use_rslora": True},
    "rank_pattern": {"rank_pattern": {"query": 8}},
    "alpha_pattern": {"alpha_pattern": {"query": 64}},
}


def base():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    return BertModel(BertConfig(num_hidden_layers=2, **sizes)).eval()


def output(model):
    with torch.no_grad():
        return model(input_ids=torch.tensor([[2, 5, 3]])).last_hidden_state


def difference(options):
    config = peft.LoraConfig(r=4, target_modules=["query", "value"], init_lora_weights=False, **options)
    with tempfile.TemporaryDirectory() as folder:
        peft.get_peft_model(base(), config).save_pretrained(folder)
        model = peft.PeftModel.from_pretrained(base(), folder).eval()
        before = output(model)
        hotswap_adapter(model, folder, adapter_name="default", torch_device="cpu")
        return float((output(model) - before).abs().max())


print(f"peft {peft.__version__}")
for name, options in CASES.items():
    found = difference(options)
    print(f"{name}: difference {found:.4f}")
    if (found > 1e-4) != name.endswith("pattern"):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
