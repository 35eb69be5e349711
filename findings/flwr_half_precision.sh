#!/bin/bash
# Flower: FedAvg adds float16 arrays up in float16, so that the average of equal replies is another model.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   flwr 1.42.0, numpy 2.4.6; error of the average of equal replies
#   FedAvg, 1000 clients, float32: 0.001% after 1 round, 0.002% after 5
#   FedTrimmedAvg, 1000 clients, float16: 0.000% after 1 round, 0.000% after 5
#   FedAvg, 10 clients, float16: 0.067% after 1 round, 0.130% after 5
#   FedAvg, 100 clients, float16: 0.642% after 1 round, 1.398% after 5
#   FedAvg, 1000 clients, float16: 5.926% after 1 round, 14.411% after 5
# Expected: the average of replies that are all the same is the same again, up to one rounding to float16, which is
#   less than 0.05%, and does not depend on the number of clients.
# Seen: `aggregate_arrayrecords` (serverapp/strategy/strategy_utils.py) multiplies each reply by the client's share, a
#   float of Python, which leaves the array in float16, and adds it to a sum in float16. With many clients, what each
#   of them adds is not much more than the distance between two neighbours of the sum, and may be so small that it has
#   few digits itself. So the error grows with the number of clients, and with each round. There is no message, and
#   the arrays have the right dtype. FedTrimmedAvg with beta=0 averages the same replies right, as numpy's mean of
#   float16 adds up in float32. FedAvgM, FedAdam and others that begin with FedAvg's average have the error too.
# Affects federated training of LoRA or models that send float16, because the weights are so or to halve the traffic:
#   the error may be larger than what clients learn in a round. Sending float32 helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile numpy==2.4.6 flwr==1.42.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, FedTrimmedAvg
from flwr.supercore.task_identity import TaskIdentity

ROUNDS = 5
WEIGHTS = np.random.default_rng(0).normal(0, 0.02, 500).astype("float16")


class Here(Grid):
    """Clients that answer with the arrays that they get, and with the same number of examples."""

    run = None

    def __init__(self, clients):
        self.clients = clients

    def get_node_ids(self):
        return range(1, self.clients + 1)

    def send_and_receive(self, messages, *, timeout=None):
        return [self.answer(message) for message in messages]

    def answer(self, message):
        arrays, metrics = ArrayRecord(dict(message.content["arrays"])), MetricRecord({"num-examples": 8})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    def unused(self, *_):
        raise NotImplementedError

    set_run = create_message = push_messages = pull_messages = unused


def errors(strategy, clients, dtype):
    """How far the weights are from what they were, after one round and after all."""
    found = []

    def compare(_, arrays):
        weights = arrays["weights"].numpy()
        found.append(float(np.linalg.norm(weights.astype(float) - WEIGHTS) / np.linalg.norm(WEIGHTS.astype(float))))

    arrays = ArrayRecord({"weights": Array(WEIGHTS.astype(dtype))})
    result = strategy.start(Here(clients), arrays, ROUNDS, evaluate_fn=compare)
    print(f"{type(strategy).__name__}, {clients} clients, {result.arrays['weights'].numpy().dtype}: ", end="")
    print(f"{found[1]:.3%} after 1 round, {found[-1]:.3%} after {ROUNDS}")
    return found[1], found[-1]


TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
print(f"flwr {version('flwr')}, numpy {np.__version__}; error of the average of equal replies")
failed = max(errors(FedAvg(fraction_evaluate=0.0), 1000, "float32")) > 1e-4
failed |= max(errors(FedTrimmedAvg(fraction_evaluate=0.0, beta=0.0), 1000, "float16")) > 1e-3
for clients, least in (10, 0.0003), (100, 0.003), (1000, 0.03):
    once, more = errors(FedAvg(fraction_evaluate=0.0), clients, "float16")
    failed |= once < least or more < 1.5 * once
sys.exit(failed)
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
