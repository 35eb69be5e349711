#!/bin/bash
# adapters: a prefix that was ejected, saved and loaded again has random values.
#
# Run on 2026-11-28, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   trained: difference 0.0; ejected: difference above 0.01, missing weights 15
# Expected: load_adapter computes what the saved model did, also after eject_prefix_tuning.
# Seen: eject_prefix_tuning makes the prefix flat, the configuration that is saved still has flat false. So loading
# makes a new network with random weights, finds none of them in the file, and says so only at level INFO.
# Affects who shares ejected prefixes; and who reads the files by their configuration: the weights decide.
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

config = BertConfig(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=9
)
torch.manual_seed(0)
weights = adapters.BertAdapterModel(config).state_dict()


def new_model():
    model = adapters.BertAdapterModel(config)
    model.load_state_dict(weights)
    return model


def output(model):
    model.eval()
    model.set_active_adapters("a")
    with torch.no_grad():
        return model.bert(torch.tensor([[2, 5, 3]])).last_hidden_state


def difference(is_ejected):
    model, again, info = new_model(), new_model(), {}
    model.add_adapter("a", config=adapters.PrefixTuningConfig(prefix_length=3, bottleneck_size=4))
    if is_ejected:
        model.eject_prefix_tuning("a")
    with tempfile.TemporaryDirectory() as folder:
        model.save_adapter(folder, "a")
        again.load_adapter(folder, loading_info=info)
    return float((output(model) - output(again)).abs().max()), len(info["missing_keys"])


print(f"adapters {adapters.__version__}")
trained, ejected = difference(False), difference(True)
print(f"trained: difference {trained[0]}; ejected: difference {ejected[0]:.3f}, missing weights {ejected[1]}")
sys.exit(trained != (0.0, 0) or ejected[0] < 0.01 or ejected[1] != 15)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
