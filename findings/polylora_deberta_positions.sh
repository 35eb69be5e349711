#!/bin/bash
# PolyLoRA: on a DeBERTa, an adapter of queries and keys answers otherwise than in PEFT, and as its neighbours decide.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   polylora 0.1.1, peft 0.21.2; distance from PEFT, where the base has 100%
#   BERT, query, key, value: 0% after a text of the same adapter, 0% after one of another
#   DeBERTa, value_proj, dense: 0% after a text of the same adapter, 0% after one of another
#   DeBERTa, query_proj, key_proj, value_proj: 14% after a text of the same adapter, 62% after one of another
# Expected: what PEFT computes with the adapter of the row. The README adapts query_proj, key_proj and value_proj, the
#   names of DeBERTa.
# Seen: a DeBERTa also sends its table of relative positions, of shape (1, 2 * buckets, size), through query_proj and
#   key_proj. `MultiLoraLinear._prepare_batched_inputs` (layers.py) takes that for the first text of the batch: rows of
#   the table beyond the length of that text get no LoRA, and those before it get the adapter of the first text, for
#   all texts. With 256 buckets a text of 50 tokens reads rows 207 to 305, of which none is adapted.
# Affects servers of GLiNER (gliner 0.2.29, --enable-polylora), whose encoders are DeBERTa-v3 by default, and others
#   with relative positions. value_proj and dense are right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.24.0 peft==0.21.2 2> /dev/null
"$folder/venv/bin/pip" install --quiet --no-compile --no-deps polylora==0.1.1 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile
from importlib.metadata import version

import peft
import torch
from polylora import PolyLoraConfig, PolyLoraModel
from transformers import BertConfig, BertModel, DebertaV2Config, DebertaV2Model

torch.set_grad_enabled(False)
SIZES = {"vocab_size": 64, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "num_hidden_layers": 2}
POSITIONS = {"relative_attention": True, "position_buckets": 16, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
BASES = {
    "BERT": lambda: BertModel(BertConfig(**SIZES)),
    "DeBERTa": lambda: DebertaV2Model(DebertaV2Config(pos_att_type=["p2c", "c2p"], **POSITIONS, **SIZES)),
}
CASES = [
    ("BERT", ["query", "key", "value"], "query, key, value"),
    ("DeBERTa", ["value_proj", "dense"], "value_proj, dense"),
    ("DeBERTa", ["query_proj", "key_proj", "value_proj"], "query_proj, key_proj, value_proj"),
]
TEXTS = torch.randint(1, 64, (2, 24), generator=torch.Generator().manual_seed(1))


def new_base(name):
    torch.manual_seed(0)
    return BASES[name]().eval()


def save_adapter(name, targets, folder, seed):
    """A trained adapter, and what it answers."""
    model = peft.get_peft_model(new_base(name), peft.LoraConfig(r=4, lora_alpha=8, target_modules=targets)).eval()
    torch.manual_seed(seed)
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.15 * torch.randn_like(variable))
    model.save_pretrained(folder)
    return model(TEXTS).last_hidden_state


def differences(name, targets):
    """How far a text is from PEFT, by the adapter of the text before it, in percent of the change by its adapter."""
    config = PolyLoraConfig(max_gpu_adapters=2, max_rank=4, target_modules=targets, use_triton_kernels=False)
    served = PolyLoraModel(new_base(name), config)
    with tempfile.TemporaryDirectory() as folder:
        for seed, adapter in enumerate(("first", "second")):
            wanted = save_adapter(name, targets, os.path.join(folder, adapter), seed)[1]
            served.load_adapter_from_disk(adapter, os.path.join(folder, adapter))
    change = (wanted - new_base(name)(TEXTS).last_hidden_state[1]).norm()
    answers = [served(input_ids=TEXTS, adapter_ids=[one, "second"]).last_hidden_state[1] for one in ("second", "first")]
    return [round(100 * float((answer - wanted).norm() / change)) for answer in answers]


print(f"polylora {version('polylora')}, peft {peft.__version__}; distance from PEFT, where the base has 100%")
failed = False
for name, targets, title in CASES:
    same, other = differences(name, targets)
    print(f"{name}, {title}: {same}% after a text of the same adapter, {other}% after one of another")
    failed |= (same > 5, other > same + 20) != (("key_proj" in targets),) * 2
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
