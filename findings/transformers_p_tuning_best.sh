#!/bin/bash
# transformers and PEFT: with P-tuning, load_best_model_at_end and resume_from_checkpoint load something else.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   transformers 5.23.0, peft 0.21.2
#   LoRA: loss of the best epoch, loaded again, +0.0000; last loss after a break 0.0000 off
#   prompt tuning: loss of the best epoch, loaded again, +0.0000; last loss after a break 0.0000 off
#   P-tuning: loss of the best epoch, loaded again, +0.1288; last loss after a break 0.1197 off
# Expected: after training the Trainer has the model of its best checkpoint, and training that goes on from a checkpoint
#   ends where training without a break does, as it does here with LoRA and prompt tuning.
# Seen: P-tuning trains a small network that makes the prompt, and save_pretrained writes the prompt it has made. The
#   Trainer loads the file into the model under training, where it becomes the input of that network, which then makes
#   another prompt of it. The shapes fit, so nothing is said. PeftModel.from_pretrained for inference is right. Prefix
#   tuning with a network has other shapes, and is refused with an error (huggingface/peft#2256).
# Affects P-tuning: save_model after load_best_model_at_end publishes a prompt that no step of the training had.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.23.0 peft==0.21.2 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile

import peft
import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

SIZES = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CONFIG = BertConfig(num_hidden_layers=2, initializer_range=0.3, **SIZES, **NO_DROPOUT)
METHODS = {
    "LoRA": lambda: peft.LoraConfig(r=4, target_modules=["query", "value"], task_type="SEQ_CLS"),
    "prompt tuning": lambda: peft.PromptTuningConfig(num_virtual_tokens=3, task_type="SEQ_CLS"),
    "P-tuning": lambda: peft.PromptEncoderConfig(num_virtual_tokens=3, encoder_hidden_size=16, task_type="SEQ_CLS"),
}
OPTIONS = {"num_train_epochs": 4, "learning_rate": 0.05, "lr_scheduler_type": "constant", "use_cpu": True, "seed": 1}
OPTIONS |= {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True, "report_to": []}
torch.manual_seed(3)
ROWS = [{"input_ids": torch.randint(1, 50, (8,)), "labels": int(torch.randint(2, ()))} for _ in range(48)]


def trained(config, folder, checkpoint=None):
    """The Trainer after training, and the loss of evaluation after each epoch."""
    torch.manual_seed(0)
    model = peft.get_peft_model(BertForSequenceClassification(CONFIG), config)
    options = TrainingArguments(folder, disable_tqdm=True, **OPTIONS)
    trainer = Trainer(model, options, train_dataset=ROWS[:32], eval_dataset=ROWS[32:])
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer, [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]


def differences(config):
    """Loss after training less that of the best epoch, and the change of the last loss by a break after two epochs."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        trainer, losses = trained(config(), first)
        best = trainer.evaluate()["eval_loss"] - min(losses)
        return best, abs(trained(config(), second, f"{first}/checkpoint-8")[1][-1] - losses[-1])


seen = {name: differences(config) for name, config in METHODS.items()}
print(f"transformers {transformers.__version__}, peft {peft.__version__}")
for name, (best, resumed) in seen.items():
    print(f"{name}: loss of the best epoch, loaded again, {best:+.4f}; last loss after a break {resumed:.4f} off")
    if (abs(best) > 0.01, resumed > 0.01) != (name == "P-tuning",) * 2:
        sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null | grep "peft\|: loss of"
