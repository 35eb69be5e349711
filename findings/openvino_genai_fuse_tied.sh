#!/bin/bash
# OpenVINO GenAI: MODE_FUSE of an adapter for lm_head also changes the embeddings of a model with tied weights.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   openvino-genai 2026.4.1.0, peft 0.21.2; next tokens that are those of PEFT
#   own weights for the scores: DYNAMIC 100%, STATIC 100%, FUSE 100%
#   weights of the embeddings: DYNAMIC 100%, STATIC 100%, FUSE 46%
# Expected: the modes differ in speed and memory alone.
# Seen: a converted model has one constant for both, as nn.Parameter was one. `LoRAFuseTransform`
#   (src/cpp/src/lora/adapter.cpp) computes the new weight for the product of lm_head, and hands it to all that read
#   the constant, so the embedding of each token changes by its row of B A as well. PEFT and the other modes change the
#   scores only. There is no message.
# Affects adapters with lm_head among target_modules on models with tie_word_embeddings, as many small
#   ones, with weights of 16 or 32 bits, and other models that use a constant twice. MODE_STATIC helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 openvino==2026.4.1 \
  openvino-genai==2026.4.1.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import os
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import openvino as ov
import openvino_genai as genai
import peft
import torch
from torch import nn

TOKENS, SIZE = 48, 16
ALL = torch.arange(TOKENS)[:, None]
OTHER = {"attention_mask": torch.ones_like(ALL), "beam_idx": torch.zeros(TOKENS, dtype=torch.int32)}
LORA = peft.LoraConfig(r=3, lora_alpha=3, target_modules=["lm_head"])
MODES = "DYNAMIC", "STATIC", "FUSE"


class Model(nn.Module):
    """A language model that reads the last token only."""

    def __init__(self, tied):
        super().__init__()
        self.embed_tokens = nn.Embedding(TOKENS, SIZE)
        self.up_proj = nn.Linear(SIZE, SIZE)
        self.lm_head = nn.Linear(SIZE, TOKENS, bias=False)
        if tied:
            self.lm_head.weight = self.embed_tokens.weight

    def forward(self, input_ids, attention_mask, beam_idx):
        scores = self.lm_head(torch.tanh(self.up_proj(self.embed_tokens(input_ids))))
        return scores + 0 * (attention_mask.sum() + beam_idx.sum())


def new_model(tied):
    torch.manual_seed(0)
    return Model(tied).eval()


def save_base(folder, tied):
    model = ov.convert_model(new_model(tied), example_input={"input_ids": ALL, **OTHER})
    model.outputs[0].set_names({"logits"})
    ov.save_model(model, os.path.join(folder, "openvino_model.xml"), compress_to_fp16=False)
    with open(os.path.join(folder, "config.json"), "w") as file:
        file.write('{"model_type": "llama"}')


@torch.no_grad()
def trained(tied):
    """A model with an adapter, after some training."""
    model = peft.get_peft_model(new_model(tied), LORA).eval()
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.6 * torch.randn_like(variable))
    return model


@torch.no_grad()
def next_tokens(model):
    """The token with the highest score after each token of the vocabulary."""
    return model(input_ids=ALL, **OTHER)[:, -1].argmax(1).numpy()


def generated(folder, **options):
    """The token that the pipeline generates after each token of the vocabulary."""
    pipeline = genai.LLMPipeline(folder, "CPU", ATTENTION_BACKEND="SDPA", **options)
    config = genai.GenerationConfig(max_new_tokens=1, do_sample=False, eos_token_id=TOKENS)
    return np.array([pipeline.generate(ov.Tensor(np.array([[one]])), config).tokens[0][0] for one in range(TOKENS)])


def percent(one, two):
    return round(100 * float((one == two).mean()))


print(", ".join(f"{name} {version(name)}" for name in ("openvino-genai", "peft")), end="; ")
print("next tokens that are those of PEFT")
found = {}
for tied in False, True:
    with tempfile.TemporaryDirectory() as folder:
        save_base(folder, tied)
        model = trained(tied)
        model.save_pretrained(folder)
        adapter = genai.Adapter(os.path.join(folder, "adapter_model.safetensors"))
        for mode in MODES:
            config = genai.AdapterConfig(adapter, 1.0, getattr(genai.AdapterConfig.Mode, f"MODE_{mode}"))
            found[tied, mode] = percent(generated(folder, adapters=config), next_tokens(model))
    print("weights of the embeddings:" if tied else "own weights for the scores:", end=" ")
    print(", ".join(f"{mode} {found[tied, mode]}%" for mode in MODES))
fused = found.pop((True, "FUSE"))
sys.exit(set(found.values()) != {100} or fused > 60)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
