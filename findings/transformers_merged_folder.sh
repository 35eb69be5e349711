#!/bin/bash
# transformers: a folder with a merged model and its adapter is loaded with the adapter added twice.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   transformers 4.57.6, peft 0.21.2
#   merged model in a folder of its own: answers differ by 0.000
#   merged model in the folder of its adapter: answers differ by 0.000
#   transformers 5.24.0, peft 0.21.2
#   merged model in a folder of its own: answers differ by 0.000
#   merged model in the folder of its adapter: answers differ by 1.257, from twice the adapter by 0.000
# Expected: the answers of the trained model, as with 4.57.
# Seen: from_pretrained attaches an adapter whose adapter_config.json lies in the folder. Up to 4.57 it then took the
#   base from that file, so the merged weights were not read, and the answers were right. Since
#   huggingface/transformers#43781 it keeps the weights of a folder that has a config.json, and adds the adapter to
#   them. It does not check whether the weights hold the adapter already, and nothing warns. That merged weights may be
#   ignored here is old (huggingface/peft#1381); that they count twice is new.
# Affects whoever calls merge_and_unload().save_pretrained(...) with the folder of the adapter: the same folder gives
#   right answers with transformers 4 and wrong ones with 5. Folders of torchtune's LoRA recipes are so by default,
#   epoch_N has the merged weights and the adapter. Removing adapter_config.json helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile

import peft
import torch
import transformers
from peft.tuners import lora

torch.set_grad_enabled(False)
torch.manual_seed(0)
CONFIG = transformers.LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4
)
ADAPTER = peft.LoraConfig(r=4, lora_alpha=4, target_modules=["q_proj", "v_proj"])
load, tokens = transformers.AutoModelForCausalLM.from_pretrained, torch.randint(64, (2, 12))


def answers(model):
    return model.eval()(tokens).logits


print(f"transformers {transformers.__version__}, peft {peft.__version__}")
with tempfile.TemporaryDirectory() as folder:
    base, tuned, merged = (os.path.join(folder, name) for name in ("base", "tuned", "merged"))
    model = transformers.AutoModelForCausalLM.from_config(CONFIG)
    for variable in model.parameters():
        variable.add_(0.1 * torch.randn_like(variable))
    model.save_pretrained(base)
    model = peft.get_peft_model(load(base), ADAPTER)
    for name, variable in model.named_parameters():
        if "lora_" in name:
            variable.copy_(0.3 * torch.randn_like(variable))
    expected = answers(model)
    model.save_pretrained(tuned)
    for module in model.modules():  # for comparison, the adapter with twice its weight
        if isinstance(module, lora.LoraLayer):
            module.scaling["default"] = 2.0
    doubled = answers(model)
    for path in merged, tuned:
        model = peft.PeftModel.from_pretrained(load(base), tuned)
        model.merge_and_unload().save_pretrained(path)
    own, shared = answers(load(merged)), answers(load(tuned))

separate = float((own - expected).abs().max())
together = float((shared - expected).abs().max())
twice = float((shared - doubled).abs().max())
print(f"merged model in a folder of its own: answers differ by {separate:.3f}")
added = f", from twice the adapter by {twice:.3f}" if together > 0.1 else ""
print(f"merged model in the folder of its adapter: answers differ by {together:.3f}{added}")
old = transformers.__version__.startswith("4")
sys.exit(separate > 0.001 or (together > 0.001 if old else together < 0.1 or twice > 0.001))
PYTHON
python3 -m venv "$folder/venv"
for version in 4.57.6 5.24.0; do
  "$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==$version peft==0.21.2 2> /dev/null
  "$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
done
