#!/bin/bash
# PEFT: reduce_intruder_dimension leaves out DoRA's magnitudes, biases, trained heads and trained tokens.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   peft 0.21.2; what the new adapter answers otherwise, though no dimension was an intruder
#   LoRA: 0%
#   lora_alpha=32, use_rslora=True: 0%
#   rank_pattern={'v_proj': 2}, alpha_pattern={'q_proj': 3}: 0%
#   use_dora=True: 43%
#   lora_bias=True: 112%
#   modules_to_save=['lm_head']: 99%
#   trainable_token_indices=[5, 6, 7]: 42%
# Expected: the function makes a new adapter from an old one, and changes in it what it counts as an intruder. Where
#   there is none, which it reports for each layer, the new adapter is the old one; or it refuses what it cannot copy.
# Seen: `reduce_intruder_dimension` (tuners/lora/intruders.py) adds an adapter with the same configuration and copies
#   the matrices A and B. All else of the new adapter stays as it was begun: the magnitudes are the norms of the base
#   with the first random A, the bias is 0, heads and tokens are those of the base. The new adapter is then the active
#   one.
# Affects whoever reduces intruders of such an adapter: the loss of quality looks like the price of the method.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 accelerate==1.15.0 \
  2> /dev/null
export OMP_NUM_THREADS=1
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import peft
import torch
import transformers
from peft.tuners.lora.intruders import reduce_intruder_dimension

CONFIG = transformers.LlamaConfig(
    vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
)
TOKENS = torch.arange(12)[None]
OPTIONS = [
    {},
    {"lora_alpha": 32, "use_rslora": True},
    {"rank_pattern": {"v_proj": 2}, "alpha_pattern": {"q_proj": 3}},
    {"use_dora": True},
    {"lora_bias": True},
    {"modules_to_save": ["lm_head"]},
    {"trainable_token_indices": [5, 6, 7]},
]


def new_base():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(CONFIG).eval()


def train(options):
    base = new_base()
    torch.manual_seed(1)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj", "down_proj"], **options)
    model = peft.get_peft_model(base, config)
    optimizer = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], lr=0.05)
    for _ in range(5):
        model(TOKENS, labels=TOKENS).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@torch.no_grad()
def answers(model):
    return model(TOKENS).logits


base = answers(new_base())
print(f"peft {version('peft')}; what the new adapter answers otherwise, though no dimension was an intruder")
failed = False
for number, options in enumerate(OPTIONS):
    model = train(options)
    tuned = answers(model)
    lines = []
    reduce_intruder_dimension(model, threshold_epsilon=0.0, logging_sink=lines.append)
    assert all("No intruders" in line for line in lines[:-1]), lines
    change = float((answers(model) - tuned).norm() / (tuned - base).norm())
    print(f"{', '.join(f'{name}={value}' for name, value in options.items()) or 'LoRA'}: {100 * change:.0f}%")
    failed |= (change > 0.1) != (number > 2)
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
