#!/bin/bash
# Flower: adaptive clipping goes the wrong way, so that the clipping norm runs to 0, or away with all the noise.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   flwr 1.42.0; 0, 10 and 100 rounds from a distance of 4 to the answer
#   clipping on the server: norm 0.1, then 0.0361, then 4.32e-06; median update 0.724, distance 3.1
#   clipping on the server: norm 2, then 5.33, then 4.19e+04; median update 1.25e+03, distance 7.89e+03
#   clipping on the clients: norm 0.1, then 0.0361, then 4.32e-06; median update 0.724, distance 3.1
#   clipping on the clients: norm 2, then 5.33, then 4.19e+04; median update 1.25e+03, distance 7.89e+03
#   the direction turned round: norm 0.1, then 0.277, then 0.397; median update 0.372, distance 0.177
#   the direction turned round: norm 2, then 0.751, then 0.4; median update 0.372, distance 0.177
# Expected: target_clipped_quantile is "the desired quantile of updates which should be clipped", and the paper that
#   the code names (arXiv:1905.03871) has the norm go to this quantile: the median length of the updates by default.
# Seen: in the paper b is the share of updates that are not clipped, and the norm is multiplied by exp(-rate * (b -
#   target)). `_geometric_update` (serverapp/strategy/dp_adaptive_clipping.py) has this formula, but is called with
#   the share of updates that are clipped: `adaptive_clip_inputs_inplace` answers true if it made an update shorter.
#   So the norm falls when too many are clipped already, and grows when too few are. With the default of 0.1, which is
#   less than most updates, it falls by 10% in each round, and all rounds together move the weights by about 1 at
#   most. If it begins above the median, it grows for ever, and so does the noise. There is no message. Clipping on
#   the clients, and the classes of these names in flwr.server.strategy, do the same.
# Affects all federated training with adaptive clipping, of LoRA too: it stops learning, or ends as noise. Turning the
#   direction, as below, or fixed clipping helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile flwr==1.42.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import adaptiveclipping_mod
from flwr.serverapp import Grid
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideAdaptiveClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    FedAvg,
)
from flwr.supercore.task_identity import TaskIdentity

CLIENTS, ROUNDS = 20, 100
ANSWER = np.ones(16)


class Here(Grid):
    """Clients in this process, each of which goes a fifth of the way to the answer, and a bit off it."""

    run = None

    def __init__(self, mods):
        self.client, self.lengths = ClientApp(mods=mods), []
        self.client.train()(self.train)

    def train(self, message, context):
        weights = message.content["arrays"]["weights"].numpy()
        update = (ANSWER - weights) / 5 + np.random.default_rng(len(self.lengths)).normal(0, 0.1, len(weights))
        self.lengths.append(np.linalg.norm(update))
        arrays, metrics = ArrayRecord({"weights": Array(weights + update)}), MetricRecord({"num-examples": 1})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    def get_node_ids(self):
        return range(1, CLIENTS + 1)

    def send_and_receive(self, messages, *, timeout=None):
        contexts = [(one, Context(1, one.metadata.dst_node_id, {}, RecordDict(), {})) for one in messages]
        return [self.client(message, context) for message, context in contexts]

    def unused(self, *_):
        raise NotImplementedError

    set_run = create_message = push_messages = pull_messages = unused


class TurnedRound(DifferentialPrivacyServerSideAdaptiveClipping):
    """The norm grows when more updates are clipped than wanted."""

    def _geometric_update(self, clipped_fraction):
        super()._geometric_update(2 * self.target_clipped_quantile - clipped_fraction)


def train(title, kind, start, mods=()):
    np.random.seed(0)
    strategy, grid, norms = kind(FedAvg(fraction_evaluate=0.0), 0.5, CLIENTS, start), Here(list(mods)), []
    arrays = ArrayRecord({"weights": Array(np.zeros_like(ANSWER))})
    result = strategy.start(grid, arrays, ROUNDS, evaluate_fn=lambda *_: norms.append(strategy.clipping_norm))
    distance = np.linalg.norm(result.arrays["weights"].numpy() - ANSWER)
    print(f"{title}: norm {norms[0]:.3g}, then {norms[10]:.3g}, then {norms[-1]:.3g}", end="; ")
    print(f"median update {np.median(grid.lengths[-CLIENTS:]):.3g}, distance {distance:.3g}")
    return norms[-1], distance


TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
distance = np.linalg.norm(ANSWER)
print(f"flwr {version('flwr')}; 0, 10 and {ROUNDS} rounds from a distance of {distance:.3g} to the answer")
server = DifferentialPrivacyServerSideAdaptiveClipping
client = DifferentialPrivacyClientSideAdaptiveClipping
failed = False
for title, kind, mods in ("server", server, ()), ("clients", client, (adaptiveclipping_mod,)):
    norm, end = train(f"clipping on the {title}", kind, 0.1, mods)
    failed |= norm > 1e-4 or end < 0.7 * distance
    norm, end = train(f"clipping on the {title}", kind, 2.0, mods)
    failed |= norm < 1e3 or end < 10 * distance
for start in 0.1, 2.0:
    norm, end = train("the direction turned round", TurnedRound, start)
    failed |= not 0.3 < norm < 0.5 or end > 0.1 * distance
sys.exit(bool(failed))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
