#!/bin/bash
# adapters: an average of LoRAs with another svd_rank than theirs is scaled by r / svd_rank.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   r 4, svd_rank 4: 1.0 of the change; svd_rank 8: 0.5 of it; svd_rank 16: 0.25 of it
# Expected: combine_strategy="lora_delta_w_svd" factors the weighted sum of the changes of the weights, so a larger
#   svd_rank approximates it at least as well, and of one adapter nothing is lost.
# Seen: the product of the factors is right, but the new configuration has r = svd_rank and the old alpha, so its
#   scale is alpha / svd_rank instead of alpha / r.
# Affects averages and task arithmetic of LoRAs. Weights of svd_rank / r times the wanted ones make up for it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import adapters
import torch
from transformers import BertConfig, BertModel

torch.manual_seed(0)
model = BertModel(
    BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=9
    )
).eval()
adapters.init(model)
for name in ("a", "b"):
    model.add_adapter(name, config=adapters.LoRAConfig(r=4, alpha=8))
for name, weight in model.named_parameters():
    if "loras." in name:
        torch.nn.init.normal_(weight, std=0.1)


def change(name):
    """What is added to the kernel of the queries."""
    lora = model.encoder.layer[0].attention.self.query.loras[name]
    return (lora.scaling * lora.delta_w).detach()


def share(rank):
    """How large the average of weights 1 and 0 is in comparison with the first adapter."""
    options = {"combine_strategy": "lora_delta_w_svd", "svd_rank": rank}
    model.average_adapter(f"rank {rank}", ["a", "b"], weights=[1.0, 0.0], **options)
    averaged, alone = change(f"rank {rank}"), change("a")
    return round(float((averaged * alone).sum() / alone.norm() ** 2), 3)


print(f"adapters {adapters.__version__}")
shares = {rank: share(rank) for rank in (4, 8, 16)}
print(
    f"r 4, svd_rank 4: {shares[4]} of the change; svd_rank 8: {shares[8]} of it; "
    f"svd_rank 16: {shares[16]} of it"
)
sys.exit(shares != {4: 1.0, 8: 0.5, 16: 0.25})
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
