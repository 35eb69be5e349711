#!/bin/bash
# ema-pytorch: with update_every, KarrasEMA and PostHocEMA average over far more steps than sigma_rel says.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   ema-pytorch 0.8.3; 20000 steps; center and width of the average, as parts of the training
#   update_every=1, sigma_rel=0.05: 0.94 and 0.05, wanted 0.95 and 0.05; 0% are the start
#   update_every=1, sigma_rel=0.28: 0.54 and 0.28, wanted 0.54 and 0.28; 0% are the start
#   update_every=1, sigma_rel=0.15 synthesized: 0.82 and 0.15, wanted 0.82 and 0.15; 0% are the start
#   update_every=10, sigma_rel=0.05: 0.64 and 0.25, wanted 0.95 and 0.05; 0% are the start
#   update_every=10, sigma_rel=0.28: 0.11 and 0.21, wanted 0.54 and 0.28; 18% are the start
#   update_every=10, sigma_rel=0.15 synthesized: 0.25 and 0.31, wanted 0.82 and 0.15; 13% are the start
#   the default of update_every, sigma_rel=0.05: 0.16 and 0.24, wanted 0.95 and 0.05; 0% are the start
#   the default of update_every, sigma_rel=0.28: 0.02 and 0.07, wanted 0.54 and 0.28; 42% are the start
#   the default of update_every, sigma_rel=0.15 synthesized: 0.05 and 0.14, wanted 0.82 and 0.15; 33% are the start
# Expected: update_every is described as "how often to actually update, to save on compute". An average with a sigma_rel
#   has weights like t^gamma at step t (Karras et al. 2024, "Analyzing and improving the training dynamics of diffusion
#   models"), whose mean and width do not depend on how often it is updated, if there are many updates.
# Seen: `update` (post_hoc_ema.py) counts all steps, does something in each update_every-th of them, and then takes the
#   decay (1 - 1 / t)^(1 + gamma), which is that of one step, not that of the update_every steps since the last update.
#   So the average has the weights of another gamma, (1 + gamma) / update_every - 1. That is negative for the default
#   update_every=100, where the first part of the training keeps most of the weight. `synthesize_ema_model` combines
#   the averages as if they had the right gamma. There is no message, and the factor is the same for each parameter.
# Affects whoever trains with PostHocEMA or KarrasEMA as they come, or with update_every=10 as in the examples: the
#   averaged model lags far behind the trained one, and comparisons of sigma_rel are those of something else.
#   update_every=1 is right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 numpy==2.4.6 ema-pytorch==0.8.3 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import torch
from ema_pytorch import PostHocEMA
from ema_pytorch.post_hoc_ema import sigma_rel_to_gamma

STEPS, BLOCKS = 20000, 20
SIGMAS, NEW = (0.05, 0.28), 0.15


def follow(**options):
    """With which weights each average counts the parts of the training, and what was before it (the last number)."""
    model = torch.nn.Linear(1, BLOCKS + 1, bias=False)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.weight.zero_()
        model.weight[-1] = 1
        emas = PostHocEMA(
            model, sigma_rels=SIGMAS, checkpoint_every_num_steps=STEPS // 10, checkpoint_folder=folder,
            checkpoint_dtype=torch.float32, **options,
        )
        emas.copy_params_from_model_to_ema()
        for ema in emas.ema_models:
            ema.initted.fill_(True)
        for step in range(STEPS):
            model.weight.zero_()
            model.weight[step * BLOCKS // STEPS] = 1
            emas.update()
        found = [ema.ema_model.weight for ema in emas.ema_models]
        found.append(emas.synthesize_ema_model(sigma_rel=NEW).ema_model.weight)
        return [one.flatten().double().numpy() for one in found]


def describe(weights):
    """The mean time at which an average looks, and its width, as parts of the training; the start counts as time 0."""
    times = np.append((np.arange(BLOCKS) + 0.5) / BLOCKS, 0.0)
    mean = float(weights @ times)
    return mean, float(weights @ (times - mean) ** 2) ** 0.5


print(f"ema-pytorch {version('ema-pytorch')}; {STEPS} steps; center and width of the average, as parts of the training")
failed = False
for options in {"update_every": 1}, {"update_every": 10}, {}:
    title = " ".join(f"{name}={value}" for name, value in options.items()) or "the default of update_every"
    for sigma, weights in zip((*SIGMAS, NEW), follow(**options)):
        gamma = sigma_rel_to_gamma(sigma)
        wanted = (gamma + 1) / (gamma + 2)
        mean, width = describe(weights)
        made = " synthesized" if sigma == NEW else ""
        print(f"{title}, sigma_rel={sigma}{made}: {mean:.2f} and {width:.2f}, wanted", end=" ")
        print(f"{wanted:.2f} and {sigma:.2f}; {100 * weights[-1]:.0f}% are the start")
        failed |= (abs(mean - wanted) < 0.03) != (options.get("update_every") == 1)
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
