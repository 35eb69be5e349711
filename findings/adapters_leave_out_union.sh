#!/bin/bash
# adapters: load_adapter(leave_out=...), which is AdapterDrop, is ignored for several methods in one.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   SeqBnConfig, loaded with leave_out=[0, 1]: in the layers [2, 3]
#   LoRAConfig, loaded with leave_out=[0, 1]: in the layers [2, 3]
#   ConfigUnion of both, loaded with leave_out=[0, 1]: in the layers [0, 1, 2, 3]
#   MAMConfig, loaded with leave_out=[0, 1]: in the layers [0, 1, 2, 3]
# Expected: "Dynamically drop adapter modules in the specified Transformer layers when loading the adapter."
# Seen: the option is set on the union (`load` of AdapterLoader in loading.py), and only its members are read. There is
#   no message.
# Affects comparisons of speed and quality with AdapterDrop of ConfigUnion, MAMConfig and UniPELTConfig: nothing drops.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import adapters
from adapters import ConfigUnion, LoRAConfig, MAMConfig, SeqBnConfig
from transformers import BertConfig

CONFIG = BertConfig(
    hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=32, vocab_size=9
)
BOTTLENECK, LORA = SeqBnConfig(reduction_factor=4), LoRAConfig(r=2)
METHODS = {
    "SeqBnConfig": BOTTLENECK,
    "LoRAConfig": LORA,
    "ConfigUnion of both": ConfigUnion(BOTTLENECK, LORA),
    "MAMConfig": MAMConfig(),
}


def layers(method):
    """The layers that have modules of the adapter, of 4, after loading it without two."""
    model, again = (adapters.BertAdapterModel(CONFIG) for _ in range(2))
    model.add_adapter("a", config=method)
    with tempfile.TemporaryDirectory() as folder:
        model.save_adapter(folder, "a", with_head=False)
        again.load_adapter(folder, with_head=False, leave_out=[0, 1])
    return [
        i
        for i, layer in enumerate(again.bert.encoder.layer)
        if "a" in layer.output.adapters or "a" in layer.attention.self.query.loras
    ]


print(f"adapters {adapters.__version__}")
for name, method in METHODS.items():
    found = layers(method)
    print(f"{name}, loaded with leave_out=[0, 1]: in the layers {found}")
    if found != ([0, 1, 2, 3] if "Union" in name or "MAM" in name else [2, 3]):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
