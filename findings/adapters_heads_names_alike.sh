#!/bin/bash
# adapters: an adapter is saved with the heads of others whose names begin alike, and loading it replaces them.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   heads in the files of the adapter sst: sst, sst2
#   loading sst changes the head sst2
#   loading sst does not change the head mrpc
# Expected: save_adapter(folder, "sst") saves the head sst, and load_adapter changes no other head.
# Seen: the head's weights are those with "heads.sst" in their names (`filter_func` of PredictionHeadLoader in
#   loading.py), so also those of sst2. There is no message.
# Affects models with several tasks, such as a, a2 and a_old: predictions of one change when another is loaded. Readers
# of the files find weights of unknown heads.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import adapters
import torch
from transformers import BertConfig

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}


def new_model(*names):
    model = adapters.BertAdapterModel(BertConfig(num_hidden_layers=2, **SIZES))
    for name in names:
        model.add_adapter(name, config="seq_bn")
        model.add_classification_head(name, num_labels=3)
    return model


def weights(model, name):
    return {key: value.clone() for key, value in model.heads[name].state_dict().items()}


print(f"adapters {adapters.__version__}")
theirs, own = new_model("sst", "sst2", "mrpc"), new_model("sst2", "mrpc")
with tempfile.TemporaryDirectory() as folder:
    theirs.save_adapter(folder, "sst")
    saved = torch.load(f"{folder}/pytorch_model_head.bin", weights_only=True)
    names = sorted({key.split(".")[1] for key in saved})
    before = {name: weights(own, name) for name in ("sst2", "mrpc")}
    own.load_adapter(folder)
print(f"heads in the files of the adapter sst: {', '.join(names)}")
changed = {}
for name, old in before.items():
    new = weights(own, name)
    changed[name] = any(not torch.equal(new[key], old[key]) for key in old)
    print(f"loading sst {'changes' if changed[name] else 'does not change'} the head {name}")
sys.exit(names != ["sst", "sst2"] or changed != {"sst2": True, "mrpc": False})
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
