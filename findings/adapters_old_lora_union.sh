#!/bin/bash
# adapters: LoRA of versions before 1.1 is loaded with another scale than it was trained with, in a ConfigUnion.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   LoRA alone: scaling 1.0 of a file of 1.0.1, 4.0 of a file of 1.3.0
#   LoRA in a ConfigUnion: scaling 4.0 of a file of 1.0.1, 4.0 of a file of 1.3.0
# Expected: versions 0.1.0 to 1.0.1 trained without alpha / r. Pull request 770 restored it, and says that adapters of
#   those versions still compute what they did: loading sets alpha = r. Unions are not mentioned there.
# Seen: `_fix_backward_compat` (loading.py) reads the architecture of the whole adapter, which is "union", and leaves
#   its members as they are. There is no message. (The forward pass of LoRA in 1.0.1 is the same in unions.)
# Affects unions with LoRA, here r=4 and alpha=16, trained before 1.1: what LoRA adds is 4 times too large.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import json
import pathlib
import sys
import tempfile

import adapters
from adapters import ConfigUnion, LoRAConfig, SeqBnConfig
from transformers import BertConfig

CONFIG = BertConfig(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=9
)
LORA = LoRAConfig(r=4, alpha=16)
METHODS = {"alone": LORA, "in a ConfigUnion": ConfigUnion(LORA, SeqBnConfig(reduction_factor=4))}


def scaling(method, version):
    model, again = (adapters.BertAdapterModel(CONFIG) for _ in range(2))
    model.add_adapter("a", config=method)
    with tempfile.TemporaryDirectory() as folder:
        model.save_adapter(folder, "a", with_head=False)
        path = pathlib.Path(folder, "adapter_config.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"version": version}))
        again.load_adapter(folder, with_head=False)
    return again.bert.encoder.layer[0].attention.self.query.loras["a"].scaling


print(f"adapters {adapters.__version__}")
for name, method in METHODS.items():
    old, new = scaling(method, "adapters.1.0.1"), scaling(method, "adapters.1.3.0")
    print(f"LoRA {name}: scaling {old} of a file of 1.0.1, {new} of a file of 1.3.0")
    if (old, new) != (1.0 if name == "alone" else 4.0, 4.0):
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
