#!/bin/bash
# diffusers: while an adapter is fused, others have no effect, and weights set then stay in the base on unfuse_lora.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   diffusers 0.42.1, peft 0.21.2; weights with which two adapters act
#   a fused: a 1.00, b 0.00; wanted 1.00, 0.00
#     then set_adapters with a 1.0, b 1.0: a 1.00, b 0.00; wanted 1.00, 1.00
#     unfused: a 1.00, b 1.00; wanted 1.00, 1.00
#   a fused, then set_adapters with a 0.25, b 1.0: a 1.00, b 0.00; wanted 0.25, 1.00
#     unfused: a 1.00, b 1.00; wanted 0.25, 1.00
#     adapters disabled: a 0.75, b 0.00; wanted 0.00, 0.00
#   a fused, then set_adapters with a 0.0, b 1.0: a 1.00, b 0.00; wanted 0.00, 1.00
#     unfused: a 1.00, b 1.00; wanted 0.00, 1.00
#     adapters disabled: a 1.00, b 0.00; wanted 0.00, 0.00
# Expected: the active adapters act with the weights of set_adapters, or there is an error, and unfuse_lora restores the
#   base. PEFT's own set_adapter warns, and takes the merged adapter out first.
# Seen: `set_weights_and_activate_adapters` (utils/peft_utils.py) sets names and scales in each layer of PEFT, without a
#   look at what is fused. A layer with a fused adapter answers with its base alone. unfuse_lora then subtracts the
#   adapter at the scale that it has now, not at the one that was added; the rest stays in the base for good, where
#   neither disable_lora nor unload_lora reaches it. There is no message.
# Affects whoever fuses one adapter, as for fewer steps, and switches styles on top of it, without unloading the first:
#   all styles give the same images. Calling unfuse_lora before set_adapters is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 diffusers==0.42.1 \
  accelerate==1.15.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import diffusers
import peft
import torch

torch.set_grad_enabled(False)
LAYER = "mid_block.attentions.0.transformer_blocks.0.attn1.to_q"


def new_model():
    """A small UNet with the adapters a and b, of which a is active, and the weight of one layer before them."""
    torch.manual_seed(0)
    model = diffusers.UNet2DConditionModel(
        block_out_channels=(16, 32),
        layers_per_block=1,
        norm_num_groups=8,
        cross_attention_dim=32,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )
    base = model.get_submodule(LAYER).weight.clone()
    for name in "a", "b":
        config = peft.LoraConfig(r=4, lora_alpha=4, target_modules=["to_q", "to_v"], init_lora_weights=False)
        model.add_adapter(config, name)
    model.set_adapters("a")
    return model, base


def strengths(model, base):
    """The weights with which a and b act on what the layer answers."""
    layer = model.get_submodule(LAYER)
    change = layer(torch.eye(layer.in_features)).T - base
    products = [layer.lora_B[name].weight @ layer.lora_A[name].weight for name in ("a", "b")]
    found = torch.linalg.lstsq(torch.stack([one.flatten() for one in products], 1), change.flatten()[:, None]).solution
    return tuple(round(float(one), 2) + 0.0 for one in found)


def show(title, found, wanted):
    print(f"{title}: a {found[0]:.2f}, b {found[1]:.2f}; wanted {wanted[0]:.2f}, {wanted[1]:.2f}")
    results.append(found)


print(f"diffusers {diffusers.__version__}, peft {peft.__version__}; weights with which two adapters act")
results = []
model, base = new_model()
model.fuse_lora(adapter_names=["a"])
show("a fused", strengths(model, base), (1, 0))
model.set_adapters(["a", "b"], [1.0, 1.0])
show("  then set_adapters with a 1.0, b 1.0", strengths(model, base), (1, 1))
model.unfuse_lora()
show("  unfused", strengths(model, base), (1, 1))
for weight in 0.25, 0.0:
    model, base = new_model()
    model.fuse_lora(adapter_names=["a"])
    model.set_adapters(["a", "b"], [weight, 1.0])
    show(f"a fused, then set_adapters with a {weight}, b 1.0", strengths(model, base), (weight, 1))
    model.unfuse_lora()
    show("  unfused", strengths(model, base), (weight, 1))
    model.disable_lora()
    show("  adapters disabled", strengths(model, base), (0, 0))
sys.exit(results != [(1, 0), (1, 0), (1, 1), (1, 0), (1, 1), (0.75, 0), (1, 0), (1, 1), (1, 0)])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
