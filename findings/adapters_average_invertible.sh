#!/bin/bash
# adapters: average_adapter leaves out the invertible part, if the model is a BertAdapterModel or has a head.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   BertModel: difference 0.0, coupling: True
#   BertAdapterModel: difference 0.4, coupling: False
#   BertForMaskedLM: difference 0.7, coupling: False
# Expected: the average has the average of the couplings of seq_bn_inv, and an average of one adapter computes what
#   that adapter computes.
# Seen: so it is with BertModel. With the other two the new adapter has no coupling, without a message, and is saved
#   without one. (`average_adapter` in model_mixin.py asks whether the model itself has the mixin; there it is in the
#   base model.)
# Affects language adapters (MAD-X) that are averaged. Average them on the bare model, and load them again.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import adapters
import torch
from transformers import BertConfig, BertForMaskedLM, BertModel

CONFIG = BertConfig(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=9
)


def output(model, name):
    model.set_active_adapters(name)
    with torch.no_grad():
        return model.base_model(torch.tensor([[2, 5, 3]])).last_hidden_state


def difference(kind):
    torch.manual_seed(0)
    model = kind(CONFIG).eval()
    if kind is not adapters.BertAdapterModel:
        adapters.init(model)
    model.add_adapter("a", config="seq_bn_inv")
    for name, weight in model.named_parameters():
        if "adapters." in name:
            torch.nn.init.normal_(weight, std=0.2)
    model.average_adapter("b", ["a"])
    found = float((output(model, "a") - output(model, "b")).abs().max())
    return found, "b" in model.base_model.invertible_adapters


print(f"adapters {adapters.__version__}")
for kind in (BertModel, adapters.BertAdapterModel, BertForMaskedLM):
    found, has_coupling = difference(kind)
    print(f"{kind.__name__}: difference {found:.1f}, coupling: {has_coupling}")
    expected = kind is BertModel
    if has_coupling != expected or (found < 1e-5) != expected:
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
