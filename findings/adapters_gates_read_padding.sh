#!/bin/bash
# adapters: with gates (UniPELT, use_gating), the result for a text depends on the padding of its batch.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   change by padding: without gates below 1e-5, with gates above 1e-3
# Expected: positions that attention_mask leaves out change no result.
# Seen: a gate is the mean of a sigmoid over all positions, also those of padding. So do the authors' (Mao et al.
# 2022). The paper does not name padding.
# Affects who predicts in batches: a text has another result next to a longer one; and who compares with the library.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import adapters
import torch
from transformers import BertConfig

config = BertConfig(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=9
)


def change_by_padding(use_gating):
    torch.manual_seed(0)
    model = adapters.BertAdapterModel(config)
    adapter = adapters.SeqBnConfig(reduction_factor=4, use_gating=use_gating)
    model.add_adapter("a", config=adapter, set_active=True)
    for name, parameter in model.named_parameters():
        if ".adapters.a." in name:
            torch.nn.init.normal_(parameter, std=0.3)
    model.eval()
    ids = torch.tensor([[2, 5, 3, 0, 0, 0]])
    with torch.no_grad():
        alone = model.bert(ids[:, :3]).last_hidden_state
        padded = model.bert(ids, attention_mask=(ids > 0).long()).last_hidden_state[:, :3]
    return float((alone - padded).abs().max())


without, gated = change_by_padding(False), change_by_padding(True)
print(f"adapters {adapters.__version__}")
print(f"change by padding: without gates {without:.1e}, with gates {gated:.1e}")
sys.exit(without > 1e-5 or gated < 1e-3)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
