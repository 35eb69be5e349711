#!/bin/bash
# Tunix: the DPO trainer puts a BOS token before each response, in the middle of the text, and trains on it.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   google-tunix 0.1.7, jax 0.10.2
#   trained on, chosen: <pad> <bos> good or bad ? <bos> good <eos>
#   trained on, rejected: <pad> <bos> good or bad ? <bos> bad <eos>
#   log probability of the chosen response: -8.34; wanted, of good <eos>: -2.05
# Expected: a text that DPO trains on is the prompt and the response, as the model will answer a prompt.
# Seen: `process_dpo_record` (tunix/sft/dpo/dpo_trainer.py) makes the ids of prompts and of responses by the same
#   `_tokenize`, which adds BOS where there is none. So the prompt is followed by another BOS, whose probability is part
#   of the sums, and the first word of the response is judged after BOS, not after the prompt's last word. BOS also
#   takes one of the max_response_length tokens. There is no message.
# Affects DPO and ORPO with texts, for each tokenizer with a BOS (Llama, Gemma, Mistral): the model is trained to answer
#   after a token that no prompt in use ends with, and ORPO even trains it to write BOS. Ids of one's own
#   (TrainingInput) are taken as they are.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile google-tunix==0.1.7 flax==0.12.8 jax==0.10.2 \
  optax==0.2.8 2> /dev/null
export JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from tunix.sft.dpo import dpo_trainer

logging.disable(logging.WARNING)
WORDS = ["<pad>", "<bos>", "<eos>", "good", "or", "bad", "?"]


class Model(nnx.Module):
    """After "?" comes "good" with 0.9, and after BOS "good" with 0.1; all others have the same probability."""

    def __init__(self):
        table = np.full((len(WORDS), len(WORDS)), 1 / len(WORDS), "float32")
        for word, value in ("?", 0.9), ("<bos>", 0.1):
            table[WORDS.index(word)] = (1 - value) / (len(WORDS) - 1)
            table[WORDS.index(word), WORDS.index("good")] = value
        self.logits = nnx.Param(jnp.log(table))

    def __call__(self, input_tokens, positions, cache, attention_mask):
        return self.logits[...][input_tokens], None


def new_tokenizer():
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, "<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"pad_token": "<pad>", "bos_token": "<bos>", "eos_token": "<eos>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


config = dpo_trainer.DPOTrainingConfig(eval_every_n_steps=1, max_prompt_length=6, max_response_length=3)
trainer = dpo_trainer.DPOTrainer(Model(), None, optax.sgd(0.1), config, new_tokenizer())
texts = {"prompts": ["good or bad ?"], "chosen_responses": ["good <eos>"], "rejected_responses": ["bad <eos>"]}
data = trainer._prepare_inputs(texts)
rows = [" ".join(WORDS[word] for word in row) for row in np.asarray(data.input_ids)]
results = dpo_trainer.dpo_loss_fn(trainer.model, data)[1]
found, wanted = float(results["log_probs/chosen"]), float(np.log(0.9 / len(WORDS)))
print(f"google-tunix {version('google-tunix')}, jax {jax.__version__}")
print(f"trained on, chosen: {rows[0]}")
print(f"trained on, rejected: {rows[1]}")
print(f"log probability of the chosen response: {found:.2f}; wanted, of good <eos>: {wanted:.2f}")
middle = [row.split()[6] == "<bos>" for row in rows]
sys.exit(not all(middle) or abs(found - wanted) < 0.5)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
