#!/bin/bash
# PEFT: the more adapters a model has, the longer it takes to load another one.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64, AMD EPYC:
#   peft 0.21.2
#   milliseconds to load one more adapter: 45 with 1 adapter, 660 with 150
# Expected: the time depends on the size of the adapter that is loaded.
# Seen: each load walks through the weights of all adapters several times (state_dict and load_state_dict of the whole
#   model, and set_adapter), so n adapters take a time of order n squared. Here all tensors are tiny; what grows is
#   the bookkeeping alone.
# Affects servers with hundreds of adapters, which load them at the start.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import statistics
import sys
import tempfile
import time

import peft
import torch
from transformers import BertConfig, BertModel

COUNT, SAMPLE = 150, 5


def base():
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 9}
    return BertModel(BertConfig(num_hidden_layers=12, **sizes))


torch.set_num_threads(1)
print(f"peft {peft.__version__}")
seconds = []
with tempfile.TemporaryDirectory() as folder:
    config = peft.LoraConfig(r=2, target_modules=["query", "value"])
    peft.get_peft_model(base(), config).save_pretrained(folder)
    model = peft.PeftModel.from_pretrained(base(), folder)
    for number in range(COUNT):
        start = time.process_time()
        model.load_adapter(folder, f"adapter {number}")
        seconds.append(time.process_time() - start)
first, last = (1000 * statistics.median(some) for some in (seconds[:SAMPLE], seconds[-SAMPLE:]))
print(f"milliseconds to load one more adapter: {first:.0f} with 1 adapter, {last:.0f} with {COUNT}")
sys.exit(last < 3 * first)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
