#!/bin/bash
# PEFT: merging a DoRA into a base that torchao has quantized leaves out its magnitudes.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   peft 0.21.2, torchao 0.18.0, transformers 5.22.2
#   LoRA, base in float: merging changes the answers by 0% of what the adapter does
#   DoRA, base in float: merging changes the answers by 0% of what the adapter does
#   LoRA, base in 8 bits: merging changes the answers by 1% of what the adapter does
#   DoRA, base in 8 bits: merging changes the answers by 10% of what the adapter does
# Expected: the merged model answers as the tuned one, up to the rounding of 8 bits, as it does with LoRA; or an error.
# Seen: `TorchaoLoraLinear` (tuners/lora/torchao.py) takes over the forward of Linear, which knows DoRA, and has a merge
#   of its own, which adds the product of the two matrices and quantizes again. Neither its magnitudes nor its norms are
#   read. There is no message; training and evaluation before are right.
# Affects use_dora=True with a TorchAoConfig of 8 bits and merge_and_unload. Merging into the base in float is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 torchao==0.18.0 \
  accelerate==1.15.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile
from importlib.metadata import version

import peft
import torch
import transformers
from torchao.quantization import Int8WeightOnlyConfig

torch.set_grad_enabled(False)
CONFIG = transformers.LlamaConfig(
    vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4
)
TOKENS = torch.arange(12)[None]


def new_model(folder, quantized, dora):
    """A model with an adapter, whose magnitudes are half as large again as they begin, and its answers without it."""
    options = {"quantization_config": transformers.TorchAoConfig(Int8WeightOnlyConfig())} if quantized else {}
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options)
    base = model(TOKENS).logits
    torch.manual_seed(1)
    config = peft.LoraConfig(r=4, use_dora=dora, target_modules=["q_proj", "v_proj", "o_proj"], init_lora_weights=False)
    model = peft.get_peft_model(model, config).eval()
    for name, weight in model.named_parameters():
        if "magnitude" in name:
            weight.mul_(1.5)
    return model, base


print("peft", version("peft") + ", torchao", version("torchao") + ", transformers", transformers.__version__)
failed = False
with tempfile.TemporaryDirectory() as folder:
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(CONFIG).save_pretrained(folder)
    for quantized in False, True:
        for dora in False, True:
            model, base = new_model(folder, quantized, dora)
            tuned = model(TOKENS).logits
            merged = model.merge_and_unload()(TOKENS).logits
            effect, change = (float((tuned - other).norm() / (tuned - base).norm()) for other in (base, merged))
            title = f"{'DoRA' if dora else 'LoRA'}, base in {'8 bits' if quantized else 'float'}"
            print(f"{title}: merging changes the answers by {100 * change:.0f}% of what the adapter does")
            failed |= (change > 0.05) != (quantized and dora)
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
