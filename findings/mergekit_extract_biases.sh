#!/bin/bash
# mergekit: a LoRA that mergekit-extract-lora makes of a model with biases is loaded without what they changed by.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   mergekit 0.1.5, peft 0.21.2
#   Llama: answers of the adapter differ by 0.000, with lora_bias by 0.000
#   Qwen2: answers of the adapter differ by 1.202, with lora_bias by 0.000
#   Phi: answers of the adapter differ by 0.962, with lora_bias by 0.000
# Expected: an adapter of full rank computes what the tuned model does, as for Llama, which has no biases.
# Seen: for each bias of a layer in LoRA, the file has the difference of the two models as lora_B.bias. That is what
#   PEFT's option lora_bias is for (huggingface/peft#2237 names such extraction as its purpose), but the
#   adapter_config.json that make_config_dict in scripts/extract_lora.py writes does not set it. PEFT then has no such
#   variables, and PeftModel.from_pretrained drops values without a place in silence.
# Affects adapters that are made of Qwen2, Qwen2.5, Phi and other models with biases. Setting lora_bias to true in
#   adapter_config.json makes them exact.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 mergekit==0.1.5 peft==0.21.2 transformers==5.24.0 \
  2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import importlib.metadata
import os
import subprocess
import sys
import tempfile

import peft
import torch
import transformers

torch.set_grad_enabled(False)
SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
FAMILIES = {"Llama": transformers.LlamaConfig, "Qwen2": transformers.Qwen2Config, "Phi": transformers.PhiConfig}
EXTRACT = os.path.join(os.path.dirname(sys.executable), "mergekit-extract-lora")
load, tokens = transformers.AutoModelForCausalLM.from_pretrained, (torch.arange(24) * 7 % 64).view(2, 12)


def differences(config):
    """How far the adapter of full rank is from the tuned model, as it is saved, and with lora_bias."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        base, tuned, lora = (os.path.join(folder, name) for name in ("base", "tuned", "lora"))
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        for path in base, tuned:
            for variable in model.parameters():
                variable.add_(0.1 * torch.randn_like(variable))
            model.save_pretrained(path)
        command = [EXTRACT, "--model", tuned, "--base-model", base, "--out-path", lora, "--max-rank", "64"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        expected = model(tokens).logits
        answers = []
        for settings in {}, {"lora_bias": True}:
            config = peft.LoraConfig.from_pretrained(lora, **settings)
            answers.append(peft.PeftModel.from_pretrained(load(base), lora, config=config)(tokens).logits)
        return [float((found - expected).abs().max()) for found in answers]


print(f"mergekit {importlib.metadata.version('mergekit')}, peft {peft.__version__}")
wrong = []
for name, family in FAMILIES.items():
    saved, bias = differences(family(**SIZES))
    print(f"{name}: answers of the adapter differ by {saved:.3f}, with lora_bias by {bias:.3f}")
    wrong.append((saved > 0.01, bias > 0.01))
sys.exit(wrong != [(False, False), (True, False), (True, False)])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
