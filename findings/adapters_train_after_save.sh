#!/bin/bash
# adapters: after save_pretrained a model cannot be prepared for training any more.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   adapters 1.3.0
#   before saving: train_adapter works, delete_adapter works
#   after save_pretrained: train_adapter AttributeError, delete_adapter AttributeError
#   after save_adapter: train_adapter works, delete_adapter works
#   loaded from that folder: train_adapter works, delete_adapter works
# Expected: saving leaves the model as it is.
# Seen: saving takes the pool of prefixes from all layers and does not give it back, also in a model that has no prefix:
#   "'NoneType' object has no attribute 'enable_prefix'". Answers stay the same.
# Affects whoever saves the whole model between two trainings, or before another adapter. Save adapters instead, or go on
#   with the model that from_pretrained returns.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 adapters==1.3.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
import tempfile

import adapters
from transformers import BertConfig

logging.disable(logging.CRITICAL)
SIZES = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48, "vocab_size": 40}


def build():
    model = adapters.BertAdapterModel(BertConfig(num_hidden_layers=2, **SIZES))
    for name in ("one", "two"):
        model.add_adapter(name, config="seq_bn")
    return model


def attempt(when, model):
    found = []
    for name, run in (("train_adapter", model.train_adapter), ("delete_adapter", model.delete_adapter)):
        try:
            run("two")
            found.append("works")
        except AttributeError as error:
            found.append(type(error).__name__)
    print(f"{when}: train_adapter {found[0]}, delete_adapter {found[1]}")
    return found


print(f"adapters {adapters.__version__}")
works, fails = ["works"] * 2, ["AttributeError"] * 2
with tempfile.TemporaryDirectory() as folder:
    before = attempt("before saving", build())
    saved = build()
    saved.save_pretrained(folder)
    after = attempt("after save_pretrained", saved)
    alone = build()
    alone.save_adapter(f"{folder}/one", "one")
    adapter = attempt("after save_adapter", alone)
    loaded = attempt("loaded from that folder", adapters.BertAdapterModel.from_pretrained(folder))
sys.exit(not (before == adapter == loaded == works and after == fails))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
