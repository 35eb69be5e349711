#!/bin/bash
# LitGPT: a trained model with tied embeddings is converted without what its scores learned, in silence.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   litgpt 0.5.13, transformers 4.57.6; loss in LitGPT, and converted
#   Llama-3.2-1B: untrained 4.56 and 4.56, trained 0.17 and 3.29
#   Qwen2.5-0.5B: untrained 4.56 and 4.56, trained 0.19 and 3.33
#   Gemma-2-2b: untrained 4.98 and 4.98, trained 0.01 and 0.49
# Expected: `litgpt convert_from_litgpt` gives the model that was trained.
# Seen: LitGPT has two matrices where these models have one. `finetune full` trains both, each in its own way, and so
#   does LoRA with lora_head; train.tie_embeddings is for pretraining only. convert_lit_checkpoint.py leaves out lm_head
#   for Gemma. For the others the file has it, and transformers ties it away, as their config.json says. The embeddings
#   compute the scores then.
# Affects Gemma, Llama 3.2 up to 3B, Qwen2.5 up to 3B and others that are trained with LitGPT and used elsewhere, also
#   `litgpt evaluate`, which converts first. LoRA without lora_head is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 litgpt==0.5.13 transformers==4.57.6 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import contextlib
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import torch
import transformers
from litgpt import GPT, Config
from litgpt.scripts.convert_lit_checkpoint import convert_lit_checkpoint
from litgpt.utils import save_config
from torch.nn.functional import cross_entropy

torch.set_num_threads(1)
TOKENS = torch.randint(96, (8, 17), generator=torch.Generator().manual_seed(0))
LIT = {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_query_groups": 2, "head_size": 16, "intermediate_size": 96}
LIT |= {"padded_vocab_size": 96, "vocab_size": 96, "block_size": 32}
HUGGING_FACE = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
HUGGING_FACE |= {"head_dim": 16, "intermediate_size": 96, "vocab_size": 96, "tie_word_embeddings": True}
MODELS = {
    "Llama-3.2-1B": ("Llama", {"rope_adjustments": None}, {}),
    "Qwen2.5-0.5B": ("Qwen2", {}, {}),
    "Gemma-2-2b": ("Gemma2", {"attention_scores_scalar": 16}, {"query_pre_attn_scalar": 16}),
}


def loss(answer):
    return cross_entropy(answer(TOKENS[:, :-1]).flatten(0, 1), TOKENS[:, 1:].flatten())


@torch.no_grad()
def converted_loss(model, family, settings):
    config = model.config
    settings = {**settings, "rope_theta": float(config.rope_base), "rms_norm_eps": config.norm_eps}
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder), Path(folder, "out")
        torch.save(model.state_dict(), path / "lit_model.pth")
        save_config(config, path)
        with contextlib.redirect_stdout(sys.stderr):
            convert_lit_checkpoint(path, out)
        (out / "model.pth").rename(out / "pytorch_model.bin")
        getattr(transformers, family + "Config")(**HUGGING_FACE, **settings).save_pretrained(out)
        other = transformers.AutoModelForCausalLM.from_pretrained(out).eval()
    return float(loss(lambda tokens: other(tokens).logits))


def losses(name, family, lit, settings):
    """The losses of a model before and after training, each of them in LitGPT and converted."""
    torch.manual_seed(0)
    model = GPT(Config.from_name(name, **LIT, **lit)).float()
    for variable in model.parameters():
        torch.nn.init.normal_(variable, std=0.1)
    model.lm_head.weight.data.copy_(model.transformer.wte.weight)
    found = [float(loss(model).detach()), converted_loss(model, family, settings)]
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    for _ in range(60):
        loss(model).backward()
        optimizer.step()
        optimizer.zero_grad()
    return [*found, float(loss(model).detach()), converted_loss(model, family, settings)]


print(f"litgpt {version('litgpt')}, transformers {transformers.__version__}; loss in LitGPT, and converted")
failed = False
for name, settings in MODELS.items():
    found = losses(name, *settings)
    print(name + ": untrained {:.2f} and {:.2f}, trained {:.2f} and {:.2f}".format(*found))
    failed |= found[3] < found[2] + 0.2 or abs(found[0] - found[1]) > 0.02
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
