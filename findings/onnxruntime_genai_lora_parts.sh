#!/bin/bash
# onnxruntime-genai: the model builder takes A, B and scale of a LoRA alone; DoRA and embeddings are lost in silence.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   onnxruntime-genai 0.18.0, peft 0.21.2; distance of logits from PEFT
#   LoRA: 0.00, the base 0.98
#   modules_to_save: 0.00, the base 3.24
#   DoRA: 0.87, the base 1.30
#   lora_bias: 1.31, the base 1.58
#   LoRA of embed_tokens: 1.78, the base 1.92
#   trainable_token_indices: 1.46, the base 1.46
# Expected: `adapter_path`, "Use this option for LoRA models", gives a model that computes what PEFT does, or an error.
# Seen: `make_matmul_lora` (models/builders/base.py) writes x A B to the graph with the scale, also with rsLoRA and
#   patterns, and does not look for lora_magnitude_vector or the bias of lora_B. `make_model` writes the embedding from
#   the nn.Embedding inside LoRA's layer or that of trainable tokens, which is the base's. What modules_to_save trained
#   is written. LoRA on lm_head gives a file that does not load.
# Affects adapters of DoRA, with lora_bias, trainable_token_indices or embed_tokens in target_modules, as for new
#   tokens. merge_and_unload and an export of the merged folder are exact.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.24.0 peft==0.21.2 onnx-ir==1.1.0 \
  onnxruntime==1.32.0 onnxruntime-genai==0.18.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import contextlib
import os
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnxruntime
import peft
import torch
import transformers
from onnxruntime_genai.models.builder import create_model, parse_extra_options
from tokenizers import Tokenizer, models

torch.set_grad_enabled(False)
TOKENS = torch.arange(12)[None] * 5 % 48
SIZES = {"vocab_size": 48, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
TARGETS = ["q_proj", "v_proj"]
CASES = {
    "LoRA": {"use_rslora": True, "rank_pattern": {"q_proj": 2}, "alpha_pattern": {"v_proj": 3}},
    "modules_to_save": {"modules_to_save": ["embed_tokens", "lm_head", "norm"]},
    "DoRA": {"use_dora": True},
    "lora_bias": {"lora_bias": True},
    "LoRA of embed_tokens": {"target_modules": [*TARGETS, "embed_tokens"]},
    "trainable_token_indices": {"trainable_token_indices": [5, 10]},
}


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder)


def save_base(folder):
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **HEADS))
    for variable in model.parameters():
        variable.add_(0.05 * torch.randn_like(variable))
    model.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({str(one): one for one in range(48)}, unk_token="0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="0").save_pretrained(folder)


def save_adapter(base, folder, settings):
    config = {"r": 4, "lora_alpha": 8, "target_modules": TARGETS, "task_type": "CAUSAL_LM", **settings}
    model = peft.get_peft_model(load(base), peft.LoraConfig(**config))
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.1 * torch.randn_like(variable))
    model.save_pretrained(folder)


def onnx_logits(base, adapter, folder):
    where = (None, base, folder, "fp32", "cpu", folder)
    with contextlib.redirect_stdout(sys.stderr):
        create_model(*where, **parse_extra_options(*where, [f"adapter_path={adapter}"]))
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"))
    feed = {one.name: np.zeros([1, 2, 0, 16], "float32") for one in session.get_inputs() if "past" in one.name}
    feed |= {"input_ids": TOKENS.numpy(), "attention_mask": np.ones_like(TOKENS.numpy())}
    return torch.tensor(session.run(["logits"], feed)[0])


def distances(base, settings):
    """How far the ONNX model and the base are from PEFT."""
    with tempfile.TemporaryDirectory() as folder:
        adapter, out = os.path.join(folder, "adapter"), os.path.join(folder, "out")
        save_adapter(base, adapter, settings)
        wanted = peft.PeftModel.from_pretrained(load(base), adapter).eval()(TOKENS).logits
        found = onnx_logits(base, adapter, out), load(base)(TOKENS).logits
        return [float((one - wanted).abs().max()) for one in found]


print(f"onnxruntime-genai {version('onnxruntime-genai')}, peft {peft.__version__}; distance of logits from PEFT")
failed = False
with tempfile.TemporaryDirectory() as base:
    save_base(base)
    for number, (name, settings) in enumerate(CASES.items()):
        model, without = distances(base, settings)
        print(f"{name}: {model:.2f}, the base {without:.2f}")
        failed |= (model > 0.1) != (number > 1)
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
