#!/bin/bash
# OpenVINO GenAI: an adapter of PEFT that is more than LoRA of linear layers is applied in part, without a message.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   openvino-genai 2026.4.1.0, peft 0.21.2; next tokens that are those of PEFT
#   the base: 100%
#   LoRA: 100%
#   DoRA: 17%
#   LoRA with lora_bias: 50%
#   LoRA of the embeddings too: 33%
#   LoRA and a trained norm: 25%
# Expected: the answers of PEFT, or an error, or the warning about unused tensors that other files get.
# Seen: Adapter takes the tensors whose names end in lora_A.weight, lora_B.weight (or down and up) and alpha, and whole
#   weights of lm_head and embed_tokens. It drops all others in `group_lora_tensors` (src/cpp/src/lora/adapter.cpp),
#   with a message in debug builds only: the magnitudes of DoRA, so that it acts as plain LoRA; lora_B.bias;
#   lora_embedding_A and _B; and what modules_to_save trained. The warning is about layers that the model does not have.
#   adapter_config.json, which says use_dora, is not read.
# Affects whoever serves adapters of PEFT with LLMPipeline and others. The guide says that files in safetensors format
#   are supported. Merging (merge_and_unload) before the model is converted helps. That alpha is the whole factor,
#   lora_alpha / r, is in the README of the samples.
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
COMMON = {"r": 3, "lora_alpha": 3}
KINDS = {
    "LoRA": peft.LoraConfig(target_modules=["up_proj"], **COMMON),
    "DoRA": peft.LoraConfig(target_modules=["up_proj"], use_dora=True, **COMMON),
    "LoRA with lora_bias": peft.LoraConfig(target_modules=["up_proj"], lora_bias=True, **COMMON),
    "LoRA of the embeddings too": peft.LoraConfig(target_modules=["up_proj", "embed_tokens"], **COMMON),
    "LoRA and a trained norm": peft.LoraConfig(target_modules=["up_proj"], modules_to_save=["norm"], **COMMON),
}


class Model(nn.Module):
    """A language model that reads the last token only."""

    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(TOKENS, SIZE)
        self.up_proj = nn.Linear(SIZE, SIZE)
        self.norm = nn.LayerNorm(SIZE)
        self.lm_head = nn.Linear(SIZE, TOKENS, bias=False)

    def forward(self, input_ids, attention_mask, beam_idx):
        scores = self.lm_head(self.norm(torch.tanh(self.up_proj(self.embed_tokens(input_ids)))))
        return scores + 0 * (attention_mask.sum() + beam_idx.sum())


def new_model():
    torch.manual_seed(0)
    return Model().eval()


def save_base(folder):
    model = ov.convert_model(new_model(), example_input={"input_ids": ALL, **OTHER})
    model.outputs[0].set_names({"logits"})
    ov.save_model(model, os.path.join(folder, "openvino_model.xml"), compress_to_fp16=False)
    with open(os.path.join(folder, "config.json"), "w") as file:
        file.write('{"model_type": "llama"}')


@torch.no_grad()
def trained(config):
    """A model with an adapter, after some training."""
    model = peft.get_peft_model(new_model(), config).eval()
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
with tempfile.TemporaryDirectory() as folder:
    save_base(folder)
    right = {"the base": percent(generated(folder), next_tokens(new_model()))}
    for kind, config in KINDS.items():
        model = trained(config)
        model.save_pretrained(folder)
        adapter = genai.Adapter(os.path.join(folder, "adapter_model.safetensors"))
        answers = generated(folder, adapters=genai.AdapterConfig(adapter, 1.0))
        right[kind] = percent(answers, next_tokens(model))
for kind, value in right.items():
    print(f"{kind}: {value}%")
plain, others = list(right.values())[:2], list(right.values())[2:]
sys.exit(plain != [100, 100] or max(others) > 80)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
