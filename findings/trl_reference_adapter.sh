#!/bin/bash
# TRL: the reference for training a tuned adapter further is the adapter itself for LoRA, and another one for others.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   trl 1.16.0, peft 0.21.2
#   LoRA: loss before the first step 0.6931, margin of the rewards 0.000
#   DoRA: loss before the first step 0.6931, margin of the rewards 0.000
#   LoRA and a trained head: loss before the first step 0.6931, margin of the rewards 0.000
#   LoRA, also of the embedding: loss before the first step 0.7700, margin of the rewards -0.141
#   LoRA and trained tokens: loss before the first step 0.5591, margin of the rewards 0.289
#   (IA)3: loss before the first step 0.6320, margin of the rewards 0.128
#   LoHa: loss before the first step 0.7284, margin of the rewards -0.065
#   LoKr: loss before the first step 0.7376, margin of the rewards -0.065
#   VeRA: loss before the first step 0.7293, margin of the rewards -0.070
#   HRA: loss before the first step 0.6755, margin of the rewards 0.038
# Expected: 0.6931, log 2. Before the first step the model is its own reference, so no margin can differ from 0.
# Seen: given a PeftModel, DPOTrainer adds an adapter "ref" of the same configuration and copies the weights, by names
#   with ".default." in them. Weights in a ParameterDict have names that end in ".default": the embedding's part of
#   LoRA, trained tokens, and all of (IA)3, LoHa, LoKr, VeRA and HRA. They keep their initial values in "ref", so the
#   reference is the base model, or a mixture. GRPOTrainer, RLOOTrainer and KTOTrainer copy in the same way. The open
#   huggingface/trl#6975 rewrites the mapping of names for another purpose; nothing warns in the release.
# Affects SFT followed by DPO or GRPO on one adapter of these kinds: the loss is that of another reference, and its KL
#   term draws the model back to the base. With LoRA on linear layers, DoRA and modules_to_save it is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 trl==1.16.0 peft==0.21.2 transformers==5.24.0 \
  datasets==5.2.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import contextlib
import math
import sys
import tempfile

import datasets
import peft
import tokenizers
import torch
import transformers
import trl

WORDS = ["[UNK]", "[PAD]", "[EOS]", *"abcdefghij"]
CONFIG = transformers.LlamaConfig(
    vocab_size=len(WORDS),
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    bos_token_id=None,
    eos_token_id=2,
    pad_token_id=1,
)
PLACES = ["q_proj", "v_proj"]
COMMON = {"r": 4, "target_modules": PLACES}
METHODS = {
    "LoRA": peft.LoraConfig(**COMMON),
    "DoRA": peft.LoraConfig(**COMMON, use_dora=True),
    "LoRA and a trained head": peft.LoraConfig(**COMMON, modules_to_save=["lm_head"]),
    "LoRA, also of the embedding": peft.LoraConfig(r=4, target_modules=[*PLACES, "embed_tokens"]),
    "LoRA and trained tokens": peft.LoraConfig(**COMMON, trainable_token_indices=[3, 4, 5]),
    "(IA)3": peft.IA3Config(target_modules=PLACES, feedforward_modules=[]),
    "LoHa": peft.LoHaConfig(**COMMON),
    "LoKr": peft.LoKrConfig(**COMMON),
    "VeRA": peft.VeraConfig(**COMMON),
    "HRA": peft.HRAConfig(**COMMON),
}
RIGHT = 3  # the first ones
ROWS = [
    {"prompt": "a b c", "chosen": " d e f g", "rejected": " h i j"},
    {"prompt": "c d", "chosen": " a b", "rejected": " j i h"},
]
data = datasets.Dataset.from_list(ROWS)
words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]"))
words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]"
)


def loss_and_margin(config, folder):
    """Both before the first step of DPO, for an adapter that was trained before."""
    torch.manual_seed(0)
    model = peft.get_peft_model(transformers.AutoModelForCausalLM.from_config(CONFIG), config)
    with torch.no_grad():
        for variable in model.parameters():
            variable.add_((0.5 if variable.requires_grad else 0.1) * torch.randn_like(variable))
    settings = trl.DPOConfig(folder, report_to=[], use_cpu=True, bf16=False, gradient_checkpointing=False)
    trainer = trl.DPOTrainer(model, args=settings, train_dataset=data, eval_dataset=data, processing_class=tokenizer)
    found = trainer.evaluate()
    return found["eval_loss"], found["eval_rewards/margins"]


results = {}
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
    for name, config in METHODS.items():
        results[name] = loss_and_margin(config, folder)
print(f"trl {trl.__version__}, peft {peft.__version__}")
for name, (loss, margin) in results.items():
    print(f"{name}: loss before the first step {loss:.4f}, margin of the rewards {margin:.3f}")
wrong = [abs(loss - math.log(2)) > 0.001 for loss, _ in results.values()]
sys.exit(wrong != [False] * RIGHT + [True] * (len(METHODS) - RIGHT))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
