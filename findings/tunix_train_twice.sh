#!/bin/bash
# Tunix: a second call of train skips as many batches as the first has seen, so a loop of epochs trains one epoch.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   google-tunix 0.1.7, flax 0.12.8, jax 0.10.2
#   three calls with the same 20 batches: 20 steps
#   20 batches, then 30 others: 30 steps, of which 10 with the others
#   one call with all 50: 50 steps
# Expected: PeftTrainer.train(data) trains on the data that it is given.
# Seen: `PeftTrainer.train` (tunix/sft/peft_trainer.py) leaves out the first `_iter_steps` batches, which are those that
#   "are already trained" where a run goes on from a checkpoint. But the number also counts the batches of calls before,
#   whatever data they had, while the position in the data begins at 0. There is no message, and the trainer says
#   nothing about a call without a step.
# Affects an epoch as one call of train, and training in stages (other data, harder tasks, longer texts): of the second
#   data set, as much is left out as the first one had. A new PeftTrainer for each call, with a new state of the
#   optimizer, or a data set that repeats itself, helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile google-tunix==0.1.7 flax==0.12.8 jax==0.10.2 \
  optax==0.2.8 2> /dev/null
export JAX_PLATFORMS=cpu
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from tunix.sft import peft_trainer


class Model(nnx.Module):
    """LoRA that marks which batches it was trained on."""

    def __init__(self):
        self.marks = nnx.LoRAParam(jnp.zeros(100))


def loss(model, input_tokens, input_mask):
    return -model.marks[...][input_tokens[0, 0]]


def batches(start, stop):
    one = np.ones((1, 1), "int32")
    return [peft_trainer.TrainingInput(input_tokens=index * one, input_mask=one) for index in range(start, stop)]


def trained(*stages):
    """How often each batch is trained on, if train is called with each of the stages."""
    model = Model()
    trainer = peft_trainer.PeftTrainer(model, optax.sgd(1.0), peft_trainer.TrainingConfig(eval_every_n_steps=1000))
    trainer.with_loss_fn(loss).with_gen_model_input_fn(
        lambda data: {"input_tokens": data.input_tokens, "input_mask": data.input_mask}
    )
    for stage in stages:
        trainer.train(stage)
    return np.asarray(model.marks[...]).astype(int)


names = f"google-tunix {version('google-tunix')}, flax {flax.__version__}, jax {jax.__version__}"
print(names)
first, second = batches(0, 20), batches(20, 50)
epochs, stages = trained(first, first, first), trained(first, second)
print(f"three calls with the same 20 batches: {epochs.sum()} steps")
print(f"20 batches, then 30 others: {stages.sum()} steps, of which {stages[20:].sum()} with the others")
print(f"one call with all 50: {trained(first + second).sum()} steps")
sys.exit([int(one) for one in (epochs.sum(), stages[20:].sum(), stages.sum())] != [20, 10, 30])
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
