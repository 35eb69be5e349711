#!/bin/bash
# PEFT: OSF on a base in half precision trains without its projection, and so does an OSF that was loaded or copied.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   peft 0.21.2, transformers 5.22.2; of what U learned, in the kept directions:
#   base in float32: 0%
#   base in float16: 41%
#   base in bfloat16: 41%
#   float32, loaded, trained further: 0%
#   float32, loaded, low_cpu_mem_usage=True, trained further: 23%
#   float32, load_adapter of transformers, trained further: 23%
#   float32, copy.deepcopy, trained further: 23%
# Expected: 0%. OSF (Orthogonal Subspace Fine-Tuning) is for learning one task after the other: the directions of the
#   largest singular values are kept, and gradients are made orthogonal to them, so that nothing is forgotten.
# Seen: the projection is a hook on the parameters U_low and V_low (`_attach_hooks` of tuners/osf/layer.py). By default
#   weights of adapters in half precision are then cast to float32, and `cast_adapter_dtype` (tuners/tuners_utils.py)
#   puts new parameters in their places, which have no hooks. Loading by assignment and deepcopy also make new
#   parameters. There is no message, and the loss falls as it should; only what was learned before is forgotten.
# Affects OSF with nearly every language model, as these are loaded in bfloat16, and OSF in float32 that goes on from a
#   file by low_cpu_mem_usage=True or transformers. A base in float32 with the default loading is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 accelerate==1.15.0 \
  2> /dev/null
export OMP_NUM_THREADS=1
cat > "$folder/find.py" <<'PYTHON'
import copy
import sys
import tempfile
from importlib.metadata import version

import peft
import torch
import transformers

CONFIG = transformers.LlamaConfig(
    vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4
)
TOKENS = torch.arange(12)[None]
RANK = 8


def new_base(dtype=torch.float32):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(CONFIG).to(dtype)


def new_model(dtype=torch.float32):
    config = peft.OSFConfig(effective_rank=RANK, target_modules=["q_proj", "v_proj", "down_proj"])
    return peft.get_peft_model(new_base(dtype), config)


def train(model):
    model.train()
    optimizer = torch.optim.SGD([weight for weight in model.parameters() if weight.requires_grad], lr=1.0)
    for _ in range(3):
        model(TOKENS, labels=TOKENS).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@torch.no_grad()
def share(model):
    """The largest part of what a layer has learned that lies in the directions that OSF keeps."""
    found = 0.0
    for layer in model.modules():
        if isinstance(layer, peft.tuners.osf.OSFLayer):
            kept = torch.linalg.svd(layer.get_base_layer().weight.float())[0][:, :RANK]
            change = layer.osf_svd_params["default"]["U_low"] - layer._osf_U_low_init["default"]
            found = max(found, float((kept.T @ change.float()).norm() / change.float().norm()))
    return found


print(f"peft {version('peft')}, transformers {transformers.__version__}; of what U learned, in the kept directions:")
results = {}
first = train(new_model())
results["base in float32"] = share(first), False
results["base in float16"] = share(train(new_model(torch.float16))), True
results["base in bfloat16"] = share(train(new_model(torch.bfloat16))), True
with tempfile.TemporaryDirectory() as folder:
    first.save_pretrained(folder)
    for options in {}, {"low_cpu_mem_usage": True}:
        model = peft.PeftModel.from_pretrained(new_base(), folder, is_trainable=True, **options)
        title = "float32, loaded" + (", low_cpu_mem_usage=True" if options else "") + ", trained further"
        results[title] = share(train(model)), bool(options)
    model = new_base()
    model.load_adapter(folder, is_trainable=True)
    results["float32, load_adapter of transformers, trained further"] = share(train(model)), True
results["float32, copy.deepcopy, trained further"] = share(train(copy.deepcopy(first))), True
failed = False
for title, (found, wrong) in results.items():
    print(f"{title}: {100 * found:.0f}%")
    failed |= (found > 0.1) != wrong
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
