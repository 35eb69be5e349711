#!/bin/bash
# PEFT: with Lily, the result for a text depends on the other texts of its batch.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2
#   LoRA: logits differ by 0.0000 in a batch, by 0.0000 with padding
#   Lily: logits differ by 0.0642 in a batch, by 0.0020 with padding
# Expected: in evaluation, the rows of a batch are independent, and masked positions have no effect.
# Seen: Lily averages the weights of its router over all positions of all rows, also masked ones (`forward` in
#   tuners/lily/layer.py). All rows then use the average. Longer padding alone changes results as well.
# Affects evaluations and servers: predictions change with the batch size, the order of the rows and the padding.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import peft
import torch
from transformers import BertConfig, BertForSequenceClassification

COMMON = {"r": 8, "target_modules": ["query", "value"], "task_type": "SEQ_CLS"}
METHODS = {"LoRA": peft.LoraConfig(**COMMON), "Lily": peft.LilyConfig(**COMMON)}
TEXTS = torch.randint(5, 50, [64, 8], generator=torch.Generator().manual_seed(1))


def trained(config):
    """Trains for some steps, to tell whether the first token is below 25."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 50}
    base = BertForSequenceClassification(BertConfig(num_hidden_layers=2, num_labels=2, **sizes))
    model = peft.get_peft_model(base, config)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(weights, lr=1e-2)
    for _ in range(60):
        loss = model(input_ids=TEXTS, labels=(TEXTS[:, 0] < 25).long()).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def logits(model, rows, padding=0):
    mask = torch.ones_like(rows)
    rows, mask = (torch.nn.functional.pad(values, (0, padding)) for values in (rows, mask))
    with torch.no_grad():
        return model(input_ids=rows, attention_mask=mask).logits


print(f"peft {peft.__version__}")
for name, config in METHODS.items():
    model = trained(config)
    alone = torch.cat([logits(model, row[None]) for row in TEXTS])
    batch = float((logits(model, TEXTS) - alone).abs().max())
    padded = float((logits(model, TEXTS[:1], padding=24) - alone[:1]).abs().max())
    print(f"{name}: logits differ by {batch:.4f} in a batch, by {padded:.4f} with padding")
    if (max(batch, padded) > 1e-4) != (name == "Lily"):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
