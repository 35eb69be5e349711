#!/bin/bash
# SpeechBrain: an AdaptedModel trains with its own batch statistics, and its checkpoint leaves them out.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   speechbrain 1.1.2, torch 2.13.0+cpu; LoRA of ECAPA-TDNN, 4 classes
#   BatchNorm in evaluation mode: accuracy 90%, loaded from its checkpoint 90%; differ: none
#   training mode, as in Brain.fit: accuracy 87%, loaded from its checkpoint 25%; differ: num_batches_tracked,
#     running_mean, running_var
# Expected: a checkpoint that is loaded into the same base gives the model that was saved. The class is for "any torch
#   model", and the Brain puts its modules into training mode, as usual.
# Seen: `saver` (nnet/adapters.py) keeps what requires a gradient. The means and variances of BatchNorm do not, but they
#   change in training mode, also where all parameters are frozen. `loader` reads the file with strict=False, so that
#   the statistics stay those of the base. There is no message. Training goes on from a checkpoint in the same way, with
#   other results for some time. What is validated at the end of an epoch is not what the checkpoint holds, and the best
#   checkpoint is chosen by numbers that it does not reach. The same goes for a BatchNorm among unfrozen_layers.
# Affects LoRA and Houlsby adapters of models with BatchNorm, as ECAPA-TDNN, x-vectors and CRDNN, on data whose features
#   differ from those of the base. Saving the buffers, too, or keeping BatchNorm in evaluation mode, helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 torchaudio==2.11.1 speechbrain==1.1.2 2> /dev/null
rm -f "$folder"/venv/lib/python3*/site-packages/torchaudio/lib/*.so # Not used here, and built for PyTorch with CUDA.
cat > "$folder/find.py" <<'PYTHON'
import logging
import sys
import tempfile
from importlib.metadata import version

import torch

logging.disable(logging.CRITICAL)
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
from speechbrain.nnet.adapters import AdaptedModel, LoRA
from speechbrain.utils.checkpoints import Checkpointer

CLASSES = 4


def new_base():
    """A small network for speakers, whose statistics are those of features with mean 0 and variance 1."""
    torch.manual_seed(0)
    model = ECAPA_TDNN(
        16, lin_neurons=CLASSES, channels=[16] * 4 + [48], attention_channels=8, res2net_scale=2, se_channels=8
    )
    with torch.no_grad():
        for _ in range(100):
            model(torch.randn(16, 40, 16))
    return model


def new_model(base):
    torch.manual_seed(1)
    return AdaptedModel(base, LoRA, all_conv=True, adapter_kwargs={"rank": 8, "alpha": 8})


def batch(seed, rows=32):
    """Classes that differ by their mean in one feature, and features that are louder than those of the base."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, CLASSES, (rows,), generator=generator)
    features = torch.randn(rows, 40, 16, generator=generator)
    features[torch.arange(rows), :, labels] += 0.5
    return 2 + 3 * features, labels


def accuracy(model):
    features, labels = batch(1000, 400)
    with torch.no_grad():
        return float((model.eval()(features).squeeze(1).argmax(1) == labels).float().mean())


def train(model, frozen_statistics):
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], 0.01)
    for step in range(150):
        model.train()
        for module in model.modules():
            if frozen_statistics and isinstance(module, torch.nn.BatchNorm1d):
                module.eval()
        features, labels = batch(step)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(features).squeeze(1), labels).backward()
        optimizer.step()


def show(title, frozen_statistics=False):
    """The accuracy of a trained model, and of its checkpoint in a new one; which tensors differ."""
    model, other = new_model(new_base()), new_model(new_base())
    train(model, frozen_statistics)
    with tempfile.TemporaryDirectory() as folder:
        Checkpointer(folder, {"model": model}).save_checkpoint()
        Checkpointer(folder, {"model": other}).recover_if_possible()
    found = accuracy(model), accuracy(other)
    saved, loaded = model.state_dict(), other.state_dict()
    differ = sorted({name.rsplit(".", 1)[1] for name in saved if not torch.equal(saved[name], loaded[name])})
    print(f"{title}: accuracy {found[0]:.0%}, loaded from its checkpoint {found[1]:.0%};", end=" ")
    print(f"differ: {', '.join(differ) or 'none'}")
    return *found, differ


print(f"speechbrain {version('speechbrain')}, torch {torch.__version__}; LoRA of ECAPA-TDNN, {CLASSES} classes")
right = show("BatchNorm in evaluation mode", frozen_statistics=True)
wrong = show("training mode, as in Brain.fit")
failed = right[0] != right[1] or right[2] or wrong[0] - wrong[1] < 0.1
sys.exit(failed or wrong[2] != ["num_batches_tracked", "running_mean", "running_var"])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
