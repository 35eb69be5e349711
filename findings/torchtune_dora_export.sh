#!/bin/bash
# torchtune: DoRA is saved for PEFT as LoRA, with its magnitudes in another order; merged weights are wrong with a bias.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   torchtune 0.6.1, transformers 5.24.0, peft 0.21.2
#   Llama 3, values and output: merged weights differ by 0.000, the adapter in PEFT by 2.959, with use_dora by 0.000
#   Llama 3, all projections: merged weights differ by 0.000, the adapter in PEFT by 3.978, with use_dora by 2.858
#   Qwen2, values and output: merged weights differ by 0.426, the adapter in PEFT by 2.625, with use_dora by 0.426
# Expected: the merged weights, and the adapter in PEFT, compute what was trained, as they do for LoRA.
# Seen, three causes. The recipes write no use_dora into adapter_config.json, so that PEFT makes LoRA of it, and drops
#   the magnitudes as values without a place. With use_dora set by hand, q_proj and k_proj are still wrong: their rows
#   go from Meta's order to that of transformers in lora_B, but not in the magnitudes (tune_to_peft_adapter_weights).
#   And DoRALinear multiplies the bias by magnitude / norm as well, which neither get_merged_lora_ckpt nor PEFT does,
#   so nothing that Qwen2 is saved as computes what was trained. meta-pytorch/torchtune#1884 was about names alone.
# Affects whoever trains DoRA with torchtune (use_dora: True, as in the recipes llama3/8B_dora). For Llama the merged
#   weights and adapter_model.pt are right; for Qwen2 adapter_model.pt alone is, inside torchtune.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 torchtune==0.6.1 torchao==0.13.0 peft==0.21.2 \
  transformers==5.24.0 safetensors==0.8.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
"""Saves DoRA of torchtune, then loads it with transformers and PEFT: `find.py save FOLDER`, `find.py load FOLDER`."""

import os
import sys

import torch
import transformers
from safetensors.torch import load_file

torch.set_grad_enabled(False)
RANK, ALPHA, LIMIT = 4, 8, 0.001
VALUES, ALL = ["v_proj", "output_proj"], ["q_proj", "k_proj", "v_proj", "output_proj"]
CASES = ("Llama 3", VALUES), ("Llama 3", ALL), ("Qwen2", VALUES)
COMMON = {"vocab_size": 64, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "embed_dim": 32, "max_seq_len": 64}
CONFIG = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
CLASSES = {"Llama 3": transformers.LlamaConfig, "Qwen2": transformers.Qwen2Config}
tokens = torch.randint(64, (2, 12), generator=torch.Generator().manual_seed(1))


def save(family, modules, base, out):
    """Trains nothing, gives DoRA random weights, saves as the recipes do; returns the answers."""
    from torchtune import training
    from torchtune.models import llama3, qwen2
    from torchtune.modules import peft

    torch.manual_seed(0)
    config = CLASSES[family](**CONFIG, rope_parameters={"rope_type": "default", "rope_theta": 10_000.0})
    model = transformers.AutoModelForCausalLM.from_config(config)
    for variable in model.parameters():
        variable.add_(0.2 * torch.randn_like(variable))
    model.save_pretrained(base)
    build, kind = (llama3.lora_llama3, "LLAMA3") if family == "Llama 3" else (qwen2.lora_qwen2, "QWEN2")
    checkpointer = training.FullModelHFCheckpointer(base, ["model.safetensors"], kind, out)
    lora = {"lora_rank": RANK, "lora_alpha": ALPHA, "use_dora": True}
    sizes = {"rope_base": 10_000.0, "intermediate_dim": 48}
    model = build(modules, **COMMON, **sizes, **lora).eval()
    model.load_state_dict(checkpointer.load_checkpoint()[training.MODEL_KEY], strict=False)
    for module in model.modules():
        if hasattr(module, "initialize_dora_magnitude"):
            module.initialize_dora_magnitude()
    for name, variable in model.named_parameters():
        if "lora_" in name:
            variable.copy_(0.3 * torch.randn_like(variable))
        elif name.endswith("magnitude"):
            variable.mul_(1 + torch.rand_like(variable))
    answers = model(tokens)
    adapter = peft.get_adapter_state_dict(model.state_dict())
    merged = peft.get_merged_lora_ckpt({name: value.clone() for name, value in model.state_dict().items()}, RANK, ALPHA)
    names = peft.get_lora_module_names(modules, False, False)
    settings = {"r": RANK, "lora_alpha": ALPHA, "target_modules": names, "peft_type": "LORA"}
    values = {training.MODEL_KEY: merged, training.ADAPTER_KEY: adapter, training.ADAPTER_CONFIG: settings}
    checkpointer.save_checkpoint(values, epoch=0)
    return answers


def load(base, path):
    """The answers of the merged weights, of the adapter in PEFT, and there with use_dora."""
    import peft

    def new():
        return transformers.AutoModelForCausalLM.from_pretrained(base)

    merged = new()
    merged.load_state_dict(load_file(os.path.join(path, "model-00001-of-00001.safetensors")))
    tuned = peft.PeftModel.from_pretrained(new(), path)
    config = peft.LoraConfig.from_pretrained(path, use_dora=True)
    dora = peft.PeftModel.from_pretrained(new(), path, config=config)
    return [model(tokens).logits for model in (merged, tuned, dora)]


stage, folder = sys.argv[1:]
status = 0
for number, (family, modules) in enumerate(CASES):
    base, out, answers = (os.path.join(folder, f"{number}-{name}") for name in ("base", "out", "answers"))
    if stage == "save":
        torch.save(save(family, modules, base, out), answers)
        continue
    expected = torch.load(answers)
    found = [float((x - expected).abs().max()) for x in load(base, os.path.join(out, "epoch_0"))]
    places = "all projections" if modules == ALL else "values and output"
    figures = "merged weights differ by {:.3f}, the adapter in PEFT by {:.3f}, with use_dora by {:.3f}".format(*found)
    print(f"{family}, {places}: {figures}")
    wrong = [family == "Qwen2", True, family == "Qwen2" or modules == ALL]
    status |= [difference > LIMIT for difference in found] != wrong
sys.exit(status)
PYTHON
mkdir "$folder/saved"
"$folder/venv/bin/python" "$folder/find.py" save "$folder/saved" > /dev/null 2>&1
"$folder/venv/bin/pip" uninstall --quiet --yes torchao  # PEFT takes none before 0.16, torchtune none after 0.14
echo "torchtune 0.6.1, transformers 5.24.0, peft 0.21.2"
"$folder/venv/bin/python" "$folder/find.py" load "$folder/saved" 2> /dev/null
