#!/bin/bash
# Tunix: ORPO takes the odds of whole responses, not of their tokens on average, so that their lengths decide.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   google-tunix 0.1.7, jax 0.10.2; logarithm of the odds ratio, 2.20 wanted
#   1 chosen and 1 rejected tokens: 2.20, accuracy 1, gradient 0.19950
#   4 chosen and 4 rejected tokens: 6.50, accuracy 1, gradient 0.00865
#   16 chosen and 16 rejected tokens: 25.75, accuracy 1, gradient 0.00000
#   16 chosen and 4 rejected tokens: -1.88, accuracy 0, gradient 10.58950
# Expected: the odds ratio of the paper (arXiv:2403.07691, equations 3 to 7), which the code names, where the
#   probability of a response is the mean over its tokens in the logarithm. A chosen token has the probability 0.5
#   here and a rejected one 0.1, so that the logarithm is 2.20 for all lengths, and the chosen response is preferred.
# Seen: `dpo_loss_fn` (tunix/sft/dpo/dpo_trainer.py) takes the sums of log probabilities that DPO needs. A comment says
#   that TRL does so too, but TRL averages. The probability of a response of some tokens is almost 0, and then 1 - p is
#   1, so no odds are left, only a ratio of probabilities that counts each token. rewards/accuracy is of sums as well.
# Affects every training with algorithm="orpo" on responses of more than a few tokens: a chosen response that is longer
#   than the rejected one counts as the worse one, however likely its tokens are. Of two responses of one length, the
#   better one has a gradient of almost 0 from the beginning.
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

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from tunix.sft.dpo import dpo_trainer

LENGTHS = [(1, 1), (4, 4), (16, 16), (16, 4)]
CHOSEN, REJECTED = 1, 2


class Model(nnx.Module):
    """The same probabilities of tokens after each token: 0.5 for the chosen one, 0.1 for the rejected one."""

    def __init__(self):
        self.logits = nnx.Param(jnp.log(jnp.array([0.01, 0.5, 0.1, 0.39])))

    def __call__(self, input_tokens, positions, cache, attention_mask):
        return jnp.broadcast_to(self.logits[...], (*input_tokens.shape, 4)), None


def side(token, length):
    mask = (np.arange(16) < length).astype("int32")[None]
    return token * mask, mask


def example(trainer, chosen, rejected):
    """The example that the trainer makes of two responses with these numbers of tokens."""
    (chosen_ids, chosen_mask), (rejected_ids, rejected_mask) = side(CHOSEN, chosen), side(REJECTED, rejected)
    prompt = np.full((1, 2), 3, "int32")
    data = dpo_trainer.TrainingInput(
        prompt_ids=prompt,
        prompt_mask=np.ones_like(prompt),
        chosen_ids=chosen_ids,
        chosen_mask=chosen_mask,
        rejected_ids=rejected_ids,
        rejected_mask=rejected_mask,
    )
    return trainer._prepare_inputs(data)


def preference(model, data):
    """The part of the loss that is of the preference."""
    return dpo_trainer.dpo_loss_fn(model, data, "orpo")[1]["or_loss"]


model = Model()
config = dpo_trainer.ORPOTrainingConfig(algorithm="orpo", eval_every_n_steps=1)
trainer = dpo_trainer.ORPOTrainer(model, None, optax.sgd(0.1), config)
wanted = float(np.log(0.5 / 0.5) - np.log(0.1 / 0.9))
names = f"google-tunix {version('google-tunix')}, jax {jax.__version__}"
print(f"{names}; logarithm of the odds ratio, {wanted:.2f} wanted")
found = []
for chosen, rejected in LENGTHS:
    data = example(trainer, chosen, rejected)
    results = dpo_trainer.dpo_loss_fn(model, data, "orpo")[1]
    slope = float(jnp.linalg.norm(nnx.grad(preference)(model, data)["logits"][...]))
    odds, accuracy = float(jnp.log(results["odds_ratio"])), float(results["rewards/accuracy"])
    print(f"{chosen} chosen and {rejected} rejected tokens: {odds:.2f}, accuracy {accuracy:.0f}, gradient {slope:.5f}")
    found.append((round(odds, 1), accuracy))
right = abs(found[0][0] - wanted) < 0.1 and found[0][1] == 1
sys.exit(not right or found[2][0] < 20 or found[3][0] > -1 or found[3][1] != 0)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
