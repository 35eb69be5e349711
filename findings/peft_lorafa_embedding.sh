#!/bin/bash
# PEFT: with the optimizer of LoRA-FA, LoRA of an embedding stays as it was, and never learns.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   peft 0.21.2, torch 2.13.0+cpu; 200 steps
#   linear layer, one matrix with AdamW: loss 1.41, then 0.56; changed: lora_B
#   linear layer, LoRA-FA: loss 1.41, then 0.56; changed: lora_B
#   embedding, one matrix with AdamW: loss 1.41, then 0.13; changed: lora_embedding_A
#   embedding, LoRA-FA: loss 1.41, then 1.41; changed: nothing
#   both, one matrix with AdamW: loss 1.41, then 0.00; changed: lora_embedding_A, lora_B
#   both, LoRA-FA: loss 1.41, then 1.16; changed: lora_B
# Expected: create_lorafa_optimizer freezes A, which is random, and trains B, so that each LoRA layer learns, or there
#   is an error for a layer that the method does not fit.
# Seen: LoRA of an embedding begins with A at 0 and B random (tuners/lora/layer.py), the other way round than for a
#   linear layer. `LoraFAOptimizer.step` (optimizers/lorafa.py) takes any two parameters whose names contain "lora" for
#   A and B, and changes the second one alone. As A is 0, the gradient of B is 0, and A stays 0. `lora_embedding_A` is
#   not even frozen: it is counted as trainable, gets gradients, and is left out. There is no message.
# Affects LoRA-FA of models whose embeddings are among target_modules, as for new words or languages: the embeddings are
#   saved, and have no effect. LoRA of linear layers learns as it should.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.24.0 peft==0.21.2 accelerate==1.15.0 \
  2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import peft
import torch
from peft.optimizers import create_lorafa_optimizer

WORDS, CLASSES, STEPS = 20, 4, 200
TOKENS = torch.arange(WORDS).repeat(4)
LABELS = (7 * TOKENS) % CLASSES


def only_b(model):
    """AdamW of B, or of A for an embedding, whose B is random: what LoRA-FA is to do with each."""
    names = "lora_B", "lora_embedding_A"
    weights = [weight for name, weight in model.named_parameters() if any(part in name for part in names)]
    return torch.optim.AdamW(weights, 0.02)


def lorafa(model):
    return create_lorafa_optimizer(model, r=4, lora_alpha=8, lr=0.02)


def train(targets, new_optimizer):
    """The loss before and after training, and which parts of the adapter have changed or are trainable."""
    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Embedding(WORDS, 16), torch.nn.Linear(16, CLASSES))
    model = peft.get_peft_model(base, peft.LoraConfig(r=4, lora_alpha=8, target_modules=targets))
    start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimizer, losses = new_optimizer(model), []
    for _ in range(STEPS):
        loss = torch.nn.functional.cross_entropy(model(TOKENS), LABELS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = dict(model.named_parameters())
    trainable = [name.split(".")[3] for name in weights if weights[name].requires_grad]
    changed = [name.split(".")[3] for name in weights if not torch.equal(weights[name], start[name])]
    return losses[0], losses[-1], trainable, changed


print(f"peft {peft.__version__}, torch {torch.__version__}; {STEPS} steps")
failed = False
for title, targets in {"linear layer": ["1"], "embedding": ["0"], "both": ["0", "1"]}.items():
    for name, new_optimizer in {"one matrix with AdamW": only_b, "LoRA-FA": lorafa}.items():
        before, after, trainable, changed = train(targets, new_optimizer)
        print(f"{title}, {name}: loss {before:.2f}, then {after:.2f}; changed: {', '.join(changed) or 'nothing'}")
        stays = title != "linear layer" and name == "LoRA-FA"
        failed |= stays != (not any("embedding" in one for one in changed) and "lora_embedding_A" in trainable)
        failed |= (after == before) != (title == "embedding" and name == "LoRA-FA")
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
