#!/bin/bash
# diffusers: save_lora_adapter(safe_serialization=False) loses lora_alpha, and the adapter is loaded with another scale.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   diffusers 0.42.1, peft 0.21.2; rank 4
#   scale of the loaded adapter, and the difference of the answers in percent of its effect
#   lora_alpha 4: scale 1; safetensors 1, 0%; torch.save 1, 0%; with metadata 1, 0%; a dict 1, 0%
#   lora_alpha 16: scale 4; safetensors 4, 0%; torch.save 1, 84%; with metadata 1, 84%; a dict 4, 0%
#   lora_alpha 4, use_rslora True: scale 2; safetensors 2, 0%; torch.save 1, 54%; with metadata 1, 54%; a dict 2, 0%
# Expected: safe_serialization chooses the format of the file, as its description says, and a saved adapter is loaded
#   as it was. The function of pipelines refuses metadata together with safe_serialization=False.
# Seen: `save_lora_adapter` (loaders/peft.py) writes the configuration into the header of a safetensors file alone. With
#   torch.save there are only the matrices, and `get_peft_kwargs` (utils/peft_utils.py) then takes the rank for
#   lora_alpha. So the adapter acts with the scale 1 instead of lora_alpha / r. `_fetch_state_dict`
#   (loaders/lora_base.py) also puts None for the argument metadata, where the file is not safetensors. No message.
# Affects adapters of models with lora_alpha other than r, or use_rslora. The default, safetensors, is right. With the
#   configuration kept elsewhere, torch.load and load_lora_adapter(weights, metadata=...) load such a file rightly.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 diffusers==0.42.1 \
  accelerate==1.15.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile

import diffusers
import peft
import torch

torch.set_grad_enabled(False)
LAYER = "mid_block.attentions.0.transformer_blocks.0.attn1.to_q"


def new_model():
    torch.manual_seed(0)
    return diffusers.UNet2DConditionModel(
        block_out_channels=(16, 32),
        layers_per_block=1,
        norm_num_groups=8,
        cross_attention_dim=32,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    ).eval()


def answers(model):
    torch.manual_seed(1)
    return model(torch.randn(1, 4, 16, 16), torch.tensor([3]), torch.randn(1, 5, 32)).sample


def loaded(folder, name, **options):
    model = new_model()
    model.load_lora_adapter(folder, prefix=None, adapter_name="a", weight_name=name, **options)
    return model


print(f"diffusers {diffusers.__version__}, peft {peft.__version__}; rank 4")
print("scale of the loaded adapter, and the difference of the answers in percent of its effect")
failed = False
for options in {"lora_alpha": 4}, {"lora_alpha": 16}, {"lora_alpha": 4, "use_rslora": True}:
    model = new_model()
    base = answers(model)
    config = peft.LoraConfig(r=4, target_modules=["to_q", "to_v"], init_lora_weights=False, **options)
    model.add_adapter(config, "a")
    tuned = answers(model)
    with tempfile.TemporaryDirectory() as folder:
        model.save_lora_adapter(folder, "a")
        model.save_lora_adapter(folder, "a", safe_serialization=False)
        safe, pickled = "pytorch_lora_weights.safetensors", "pytorch_lora_weights.bin"
        models = [loaded(folder, safe), loaded(folder, pickled), loaded(folder, pickled, metadata=config.to_dict())]
        weights = torch.load(os.path.join(folder, pickled))
        models.append(loaded(weights, None, metadata=config.to_dict()))
    print(", ".join(f"{name} {value}" for name, value in options.items()) + ":", end=" ")
    print(f"scale {model.get_submodule(LAYER).scaling['a']:.0f};", end=" ")
    shown = []
    for title, one in zip(("safetensors", "torch.save", "with metadata", "a dict"), models):
        change = float((answers(one) - tuned).norm() / (tuned - base).norm())
        shown.append(f"{title} {one.get_submodule(LAYER).scaling['a']:.0f}, {100 * change:.0f}%")
        wrong = title in ("torch.save", "with metadata") and options != {"lora_alpha": 4}
        failed |= (change > 0.1) != wrong
    print("; ".join(shown))
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
