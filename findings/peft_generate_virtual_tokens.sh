#!/bin/bash
# PEFT: with transformers 5.24, generate computes something else than the trained prompt, without an error.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   peft 0.21.2, transformers 5.23.0: LoRA 0.000, prompt tuning 0.000, P-tuning 0.000, prefix tuning 0.000
#   peft 0.21.2, transformers 5.24.0: LoRA 0.000, prompt tuning 5.561, P-tuning 5.436, prefix tuning 3.729
# Expected: the logits of generate are those of one pass over the text that it wrote, so these differences are 0.
# Seen: transformers 5.24 hands the cache on as `cache`. `prepare_inputs_for_generation` of peft_model.py looks for
#   `past_key_values`, takes each step for the first one, and puts the virtual tokens before each new token again. A
#   prefix it hands over under the old name, and the model takes the new one: the text is that of the base. The mask of
#   padding is lost too. PEFT accepts any transformers, and pip installs this pair; transformers' own methods for
#   adapters refuse it, as they want PEFT 0.22, which is not on PyPI yet.
# Affects prompt tuning, P-tuning, prefix tuning, CPT and cartridges. LoRA is right; use_cache=False helps the prompts.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.23.0 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import peft
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
CONFIG = LlamaConfig(vocab_size=40, initializer_range=0.3, bos_token_id=1, eos_token_id=None, pad_token_id=0, **SIZES)
COMMON = {"task_type": "CAUSAL_LM"}
METHODS = {
    "LoRA": peft.LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=False, **COMMON),
    "prompt tuning": peft.PromptTuningConfig(num_virtual_tokens=3, **COMMON),
    "P-tuning": peft.PromptEncoderConfig(num_virtual_tokens=3, encoder_hidden_size=16, **COMMON),
    "prefix tuning": peft.PrefixTuningConfig(num_virtual_tokens=3, **COMMON),
}
STEPS = 6


@torch.no_grad()
def difference(config):
    """The largest difference between the logits of generate and those of one pass over what it wrote."""
    torch.manual_seed(0)
    model = peft.get_peft_model(LlamaForCausalLM(CONFIG), config).eval()
    for variable in model.parameters():
        if variable.requires_grad:
            variable.add_(0.3 * torch.randn_like(variable))
    text = torch.randint(2, 40, (1, 7))
    options = {"max_new_tokens": STEPS, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
    found = model.generate(input_ids=text, attention_mask=torch.ones_like(text), **options)
    read = found.sequences[:, :-1]
    logits = model(input_ids=read, attention_mask=torch.ones_like(read)).logits[:, -STEPS:]
    return float((torch.stack(found.logits, 1) - logits).abs().max())


seen = {name: difference(config) for name, config in METHODS.items()}
differences = ", ".join(f"{name} {value:.3f}" for name, value in seen.items())
print(f"peft {peft.__version__}, transformers {transformers.__version__}: {differences}")
wrong = {name for name, value in seen.items() if value > 1e-3}
sys.exit(wrong != (set() if sys.argv[1] == "right" else set(METHODS) - {"LoRA"}))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" right 2> /dev/null
"$folder/venv/bin/pip" install --quiet --no-compile transformers==5.24.0 2> /dev/null
"$folder/venv/bin/python" "$folder/find.py" wrong 2> /dev/null
