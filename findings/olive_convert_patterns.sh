#!/bin/bash
# Olive: convert-adapters scales all layers of a LoRA alike, whatever its rank_pattern and alpha_pattern say.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   olive-ai 0.13.0, peft 0.21.2; scales of queries and values
#   LoRA: PEFT 2.00 and 2.00, Olive 2.00 and 2.00
#   rsLoRA: PEFT 4.00 and 4.00, Olive 4.00 and 4.00
#   rank_pattern: PEFT 4.00 and 2.00, Olive 2.00 and 2.00
#   alpha_pattern: PEFT 1.00 and 2.00, Olive 2.00 and 2.00
#   both: PEFT 4.00 and 2.00, Olive 2.00 and 2.00
# Expected: the file holds B times the scale that PEFT has for the layer, as Olive's own export of the model does.
# Seen: `ConvertAdaptersCommand.run` (olive/cli/convert_adapters.py) computes one scale from lora_alpha and r of the
#   configuration, for all layers. Those with a pattern get another one than in training, without a message. DoRA, which
#   the file cannot hold, is refused.
# Affects multi-LoRA serving with ONNX Runtime, of adapters with other ranks or alphas for some layers, as for the
#   attention or for the experts. EVA's adapters keep one scale by default, and are right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.24.0 peft==0.21.2 olive-ai==0.13.0 \
  onnxruntime==1.32.0 requests 2> /dev/null
export OLIVE_DISABLE_TELEMETRY=1
cat > "$folder/find.py" <<'PYTHON'
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

import peft
import torch
import transformers
from safetensors.torch import load_file

torch.set_grad_enabled(False)
CONFIG = transformers.LlamaConfig(
    vocab_size=48, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4
)
LAYERS = "q_proj", "v_proj"
CASES = {
    "LoRA": {},
    "rsLoRA": {"use_rslora": True},
    "rank_pattern": {"rank_pattern": {"q_proj": 2}},
    "alpha_pattern": {"alpha_pattern": {"q_proj": 4}},
    "both": {"rank_pattern": {"q_proj": 8}, "alpha_pattern": {"q_proj": 32}},
}


def trained(settings):
    torch.manual_seed(0)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=list(LAYERS), task_type="CAUSAL_LM", **settings)
    model = peft.get_peft_model(transformers.LlamaForCausalLM(CONFIG), config)
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.1 * torch.randn_like(variable))
    return model


def scales(settings):
    """The scale of each layer in PEFT, and in the file that Olive writes."""
    with tempfile.TemporaryDirectory() as folder:
        model, file = trained(settings), os.path.join(folder, "converted")
        model.save_pretrained(folder)
        command = os.path.join(os.path.dirname(sys.executable), "olive")
        command = [command, "convert-adapters", "-a", folder, "-o", file, "--adapter_format", "safetensors"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        tensors = load_file(file + ".safetensors")
    found = []
    for name in LAYERS:
        layer = model.get_submodule(f"base_model.model.model.layers.0.self_attn.{name}")
        (key,) = (key for key in tensors if f"{name}.lora_B" in key)
        weight = layer.lora_B["default"].weight
        found.append((layer.scaling["default"], float((tensors[key].T * weight).sum() / weight.square().sum())))
    return found


print(f"olive-ai {version('olive-ai')}, peft {peft.__version__}; scales of queries and values")
right = set()
for case, settings in CASES.items():
    found = scales(settings)
    print(case + ": PEFT {:.2f} and {:.2f}, Olive {:.2f} and {:.2f}".format(*sum(zip(*found, strict=True), ())))
    if all(abs(one - other) < 1e-3 for one, other in found):
        right.add(case)
sys.exit(right != {"LoRA", "rsLoRA"})
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
