#!/bin/bash
# Opacus and PEFT: private training accepts every method of PEFT, and the first step of most of them fails.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   opacus 1.6.0, peft 0.21.2
#   trains: LoRA, LayerNorms, prefix
#   fails in the first step: IA3, LoHa, LoKr, VeRA, FourierFT, HRA, BOFT
#   fails in the backward pass or before: DoRA
#   each of the three: error of the clipped mean of the gradients 0.0000
# Expected: ModuleValidator and make_private name the layers that Opacus cannot train, as they do for BatchNorm.
# Seen: both accept the models. Opacus computes gradients of single examples for variables of layers that it knows or can
#   call alone. LoRA's factors are such layers; the variables of the other methods are not, so they have no such gradients:
#   "Per sample gradient is not initialized", after the data was loaded and the first pass computed.
# Affects whoever compares methods under differential privacy. Of PEFT's methods take LoRA, LayerNorms or prefixes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==4.57.6 peft==0.21.2 opacus==1.6.0 \
  2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys

import opacus
import peft
import torch
from opacus.validators import ModuleValidator
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 30}
FIXED = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
ROWS, LABELS, NORM = torch.arange(28).reshape(4, 7), torch.tensor([0, 1, 2, 1]), 0.3
ATTENTION = {"task_type": "SEQ_CLS", "target_modules": ["query", "value"]}
METHODS = {
    "LoRA": peft.LoraConfig(**ATTENTION),
    "LayerNorms": peft.LNTuningConfig(task_type="SEQ_CLS", target_modules=["LayerNorm"]),
    "prefix": peft.PrefixTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=4),
    "DoRA": peft.LoraConfig(use_dora=True, **ATTENTION),
    "IA3": peft.IA3Config(feedforward_modules=[], **ATTENTION),
    "LoHa": peft.LoHaConfig(**ATTENTION),
    "LoKr": peft.LoKrConfig(**ATTENTION),
    "VeRA": peft.VeraConfig(**ATTENTION),
    "FourierFT": peft.FourierFTConfig(n_frequency=20, **ATTENTION),
    "HRA": peft.HRAConfig(**ATTENTION),
    "BOFT": peft.BOFTConfig(boft_block_size=4, **ATTENTION),
}
LOSS = torch.nn.CrossEntropyLoss()


def build(config):
    torch.manual_seed(0)
    base = BertForSequenceClassification(BertConfig(num_hidden_layers=2, num_labels=3, **SIZES, **FIXED))
    model = peft.get_peft_model(base, config).train()
    trained = [variable for variable in model.parameters() if variable.requires_grad]
    with torch.no_grad():
        for variable in trained:
            variable.add_(0.1 * torch.randn_like(variable))
    return model, trained


def expected(config):
    """The mean of the clipped gradients, an example at a time."""
    model, trained = build(config)
    total = [torch.zeros_like(variable) for variable in trained]
    for row, label in zip(ROWS, LABELS):
        model.zero_grad()
        LOSS(model(input_ids=row[None]).logits, label[None]).backward()
        norm = torch.sqrt(sum((variable.grad**2).sum() for variable in trained))
        for mean, variable in zip(total, trained):
            mean += min(1.0, NORM / float(norm)) * variable.grad / len(ROWS)
    return total


def result(config):
    """Where training ends, or the largest difference of a step from the expected one."""
    model, trained = build(config)
    assert not ModuleValidator.validate(model, strict=False)
    before = [variable.detach().clone() for variable in trained]
    private, optimizer, _ = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(trained, lr=1.0),
        data_loader=DataLoader(TensorDataset(ROWS, LABELS), batch_size=4),
        noise_multiplier=0.0,
        max_grad_norm=NORM,
        poisson_sampling=False,
    )
    try:
        LOSS(private(input_ids=ROWS).logits, LABELS).backward()
    except Exception:
        return "pass"
    try:
        optimizer.step()
    except Exception:
        return "step"
    moved = [old - variable.detach() for old, variable in zip(before, trained)]
    return max(float((ours - mean).abs().max()) for ours, mean in zip(moved, expected(config)))


results = {name: result(config) for name, config in METHODS.items()}
trains = {name: value for name, value in results.items() if isinstance(value, float)}
print(f"opacus {opacus.__version__}, peft {peft.__version__}")
print("trains:", ", ".join(trains))
print("fails in the first step:", ", ".join(name for name, value in results.items() if value == "step"))
print("fails in the backward pass or before:", ", ".join(name for name, value in results.items() if value == "pass"))
print(f"each of the three: error of the clipped mean of the gradients {max(trains.values()):.4f}")
sys.exit(sorted(trains) != ["LayerNorms", "LoRA", "prefix"] or max(trains.values()) > 1e-4)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
