#!/bin/bash
# diffusers: the scale of fuse_lora stays with the active adapters, and a call with scale 0 sets their weights to 1.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   diffusers 0.42.1, peft 0.21.2; weights with which two adapters act
#   a active, a fused with 0.5: a 0.50, b 0.00; wanted 0.50, 0.00
#     unfused: a 0.50, b 0.00; wanted 1.00, 0.00
#     fused with 0.5 again: a 0.25, b 0.00; wanted 0.50, 0.00
#   b active, a fused with 0.5: a 1.00, b 0.00; wanted 0.50, 1.00
#     unfused, both active: a 1.00, b 0.50; wanted 1.00, 1.00
#   weights 0.25 and 0.75, after a call with scale 0.5: a 0.25, b 0.75; wanted 0.25, 0.75
#   weights 0.25 and 0.75, after a call with scale 0.0: a 1.00, b 1.00; wanted 0.25, 0.75
# Expected: unfuse_lora "reverses the effect" of fuse_lora, lora_scale is for the adapters in adapter_names, and the
#   scale in cross_attention_kwargs is for one call.
# Seen: `_fuse_lora_apply` (loaders/peft.py) multiplies the scales of the active adapters, whichever are to be fused,
#   and unfuse_lora leaves them so. After a call with 0, `unscale_lora_layers` (utils/peft_utils.py) cannot divide, and
#   sets the weights of the active adapters to 1, not to what set_adapters gave them. There is no message.
# Affects whoever tries several scales of fusing, each weaker than asked for, fuses an adapter that is not active, at
#   full strength, or compares with scale 0: the next images have all adapters at full strength. Calling set_adapters
#   with all weights again before fusing, or after a call with 0, helps.
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
model.fuse_lora(lora_scale=0.5, adapter_names=["a"])
show("a active, a fused with 0.5", strengths(model, base), (0.5, 0))
model.unfuse_lora()
show("  unfused", strengths(model, base), (1, 0))
model.fuse_lora(lora_scale=0.5, adapter_names=["a"])
show("  fused with 0.5 again", strengths(model, base), (0.5, 0))
model, base = new_model()
model.set_adapters("b")
model.fuse_lora(lora_scale=0.5, adapter_names=["a"])
show("b active, a fused with 0.5", strengths(model, base), (0.5, 1))
model.unfuse_lora()
model.set_adapter(["a", "b"])
show("  unfused, both active", strengths(model, base), (1, 1))
for scale in 0.5, 0.0:
    model, base = new_model()
    model.set_adapters(["a", "b"], [0.25, 0.75])
    model(torch.ones(1, 4, 8, 8), 1, torch.ones(1, 3, 32), cross_attention_kwargs={"scale": scale})
    show(f"weights 0.25 and 0.75, after a call with scale {scale}", strengths(model, base), (0.25, 0.75))
sys.exit(results != [(0.5, 0), (0.5, 0), (0.25, 0), (1, 0), (1, 0.5), (0.25, 0.75), (1, 1)])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
