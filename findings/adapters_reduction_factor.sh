#!/bin/bash
# adapters: a reduction factor of hidden size / m does not always give a bottleneck of size m.
#
# Run on 2026-11-27, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   hidden / m: {12: 12, 13: 12, 60: 59, 64: 64, 120: 119}; by the same rule 315 of 768 sizes differ
#   hidden / (m + 0.5): {12: 12, 13: 13, 60: 60, 64: 64, 120: 120}
# Expected: reduction_factor = 768 / 60 = 12.8 gives a bottleneck of 60.
# Seen: 59. The size is int(hidden_size // reduction_factor), and 768 // 12.8 is 59.0 in floats.
# 315 of the sizes 1 to 768 are one too small. hidden / (m + 0.5) gives m for all of them.
# Affects everybody who chooses a size instead of a factor, or converts adapters to this format.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 adapters==1.3.0
cat > "$folder/find.py" <<'PYTHON'
import adapters
from transformers import BertConfig

config = BertConfig(
    hidden_size=768, num_hidden_layers=1, num_attention_heads=12, intermediate_size=8, vocab_size=9
)
model = adapters.BertAdapterModel(config)


def size(factor):
    model.add_adapter("a", config=adapters.SeqBnConfig(reduction_factor=factor), overwrite_ok=True)
    bottleneck = model.bert.encoder.layer[0].output.adapters["a"]
    return bottleneck.adapter_down[0].out_features


print(f"adapters {adapters.__version__}")
sizes = (12, 13, 60, 64, 120)
divided = {m: size(768 / m) for m in sizes}
shifted = {m: size(768 / (m + 0.5)) for m in sizes}
wrong = sum(int(768 // (768 / m)) != m for m in range(1, 769))
print(f"hidden / m: {divided}; by the same rule {wrong} of 768 sizes differ")
print(f"hidden / (m + 0.5): {shifted}")
right = {m: m for m in sizes}
raise SystemExit(0 if divided[60] == 59 and divided[64] == 64 and shifted == right else 1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
