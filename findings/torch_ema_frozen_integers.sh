#!/bin/bash
# PyTorch and Lightning: an EMA of weights changes integers that never change: a frozen 4-bit base, and positions.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   torch 2.13.0, lightning 2.6.6, bitsandbytes 0.50.2, peft 0.21.2, transformers 5.22.2
#   a base in 4 bits, SWA: 0 of 2048 integers changed, answers off by 0%
#   a base in 4 bits, EMA of 0.9: 649 of 2048 integers changed, answers off by 39%
#   a base in 4 bits, EMA of 0.99: 0 of 2048 integers changed, answers off by 0%
#   a base in 4 bits, EMA of 0.999: 0 of 2048 integers changed, answers off by 0%
#   a base in 4 bits, EMA of 0.9995: 685 of 2048 integers changed, answers off by 32%
#   a base in 4 bits, EMA of 0.9999: 392 of 2048 integers changed, answers off by 17%
#   positions of BERT, SWA: 0 of 512 integers changed, answers off by 0%
#   positions of BERT, EMA of 0.9: 147 of 512 integers changed, answers off by 94%
#   positions of BERT, EMA of 0.99: 0 of 512 integers changed, answers off by 0%
#   positions of BERT, EMA of 0.999: 0 of 512 integers changed, answers off by 0%
#   positions of BERT, EMA of 0.9995: 160 of 512 integers changed, answers off by 88%
#   positions of BERT, EMA of 0.9999: 99 of 512 integers changed, answers off by 75%
#   the model itself after fit with EMAWeightAveraging(decay=0.9999): 392 of 2048 integers changed
# Expected: the average of a number that is always the same is this number, so that what is frozen stays as it is.
# Seen: `AveragedModel.update_parameters` (torch/optim/swa_utils.py) hands all parameters, and with use_buffers all
#   buffers, to the average, integers too. `get_ema_avg_fn` and `get_ema_multi_avg_fn` compute
#   decay * average + (1 - decay) * value in float32, and copying the result back cuts it off. For some values the sum
#   is a bit below the integer, which becomes the one before. Which ones depends on the decay: here none with 0.99 and
#   0.999, many with 0.9, 0.9995 and 0.9999. The bytes of a 4-bit base hold two weights each, so that both may change.
#   There is no message. Equal averages (SWA) are right.
# Affects an EMA of LoRA on a base in 4 bits, and of models with integers in buffers if use_buffers is set, which it is
#   in Lightning's (EMA)WeightAveraging: position_ids of BERT, relative_position_index of Swin (found for a loop of
#   one's own in microsoft/Swin-Transformer#111). At the end of fit, Lightning puts the average, with the damaged base,
#   into the model. An AveragedModel of the trained parameters alone helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.22.2 peft==0.21.2 \
  bitsandbytes==0.50.2 lightning==2.6.6 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
from importlib.metadata import version

import bitsandbytes
import lightning
import peft
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn
from transformers import BertConfig, BertModel

logging.disable(logging.WARNING)
DECAYS = (0.9, 0.99, 0.999, 0.9995, 0.9999)
SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 2}
ROWS = torch.randn(32, 64, generator=torch.Generator().manual_seed(0))


def new_lora():
    """LoRA on a frozen layer in 4 bits."""
    torch.manual_seed(0)
    base = bitsandbytes.nn.Linear4bit(64, 64, bias=False, quant_type="nf4", compute_dtype=torch.float32).to("cpu")
    return peft.get_peft_model(torch.nn.Sequential(base), peft.LoraConfig(r=4, target_modules=["0"]))


def new_bert():
    torch.manual_seed(0)
    return BertModel(BertConfig(vocab_size=512, initializer_range=1.0, **SIZES)).eval()


def integers(model):
    found = [one for one in (*model.parameters(), *model.buffers()) if not one.is_floating_point()]
    return torch.cat([one.flatten().long() for one in found])


@torch.no_grad()
def damage(model, answer, **options):
    """How many integers are others in the average of weights that are not trained, and how far answers are off."""
    average = AveragedModel(model, **options)
    for _ in range(10):
        average.update_parameters(model)
    wanted = answer(model)
    changed = int((integers(average.module) != integers(model)).sum())
    return changed, float((answer(average.module) - wanted).norm() / wanted.norm())


class Training(lightning.LightningModule):
    """Trains the LoRA for some steps."""

    def __init__(self):
        super().__init__()
        self.model = new_lora()

    def training_step(self, batch, index):
        return self.model(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD([one for one in self.parameters() if one.requires_grad], 0.01)


CASES = {
    "a base in 4 bits": (new_lora(), lambda model: model(ROWS), False),
    "positions of BERT": (new_bert(), lambda model: model(torch.arange(512)[None])[0], True),
}
names = ("torch", "lightning", "bitsandbytes", "peft", "transformers")
print(", ".join(f"{name} {version(name).split('+')[0]}" for name in names))
failed = False
for title, (model, answer, buffers) in CASES.items():
    total = len(integers(model).unique()) if buffers else len(integers(model))
    changed, error = damage(model, answer, use_buffers=buffers)
    print(f"{title}, SWA: {changed} of {total} integers changed, answers off by {error:.0%}")
    failed |= changed > 0 or error > 1e-6
    for decay in DECAYS:
        changed, error = damage(model, answer, use_buffers=buffers, avg_fn=get_ema_avg_fn(decay))
        print(f"{title}, EMA of {decay}: {changed} of {total} integers changed, answers off by {error:.0%}")
        multi = damage(model, answer, use_buffers=buffers, multi_avg_fn=get_ema_multi_avg_fn(decay))
        right = decay in (0.99, 0.999)
        failed |= (changed == 0) != right or (error < 0.01) != right or multi[0] != changed
training = Training()
before = integers(training.model)
quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
trainer = lightning.Trainer(callbacks=[EMAWeightAveraging(decay=0.9999)], accelerator="cpu", max_epochs=1, **quiet)
trainer.fit(training, torch.utils.data.DataLoader(ROWS, 8))
changed = int((integers(training.model) != before).sum())
print(f"the model itself after fit with EMAWeightAveraging(decay=0.9999): {changed} of {len(before)} integers changed")
sys.exit(failed or changed == 0)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
