#!/bin/bash
# Flower: FedAvgM and server-side clipping mix layers up if the arrays of the server have another order than replies.
#
# Run on 2026-11-30, Python 3.11, Linux x86-64:
#   flwr 1.42.0, peft 0.21.2, transformers 5.24.0, torch 2.13.0
#   LoRA from its file: 48 arrays, of which 40 are at other places than in the model; loss 0.010, after 3 rounds:
#   FedAvg: 0.010 in the order of the model, 0.010 in the order of the file
#   FedAdam: 0.010 in the order of the model, 0.010 in the order of the file
#   FedAvgM, momentum 0.9: 0.010 in the order of the model, 2.009 in the order of the file
#   FedAvgM, learning rate 0.5: 0.010 in the order of the model, 0.680 in the order of the file
#   clipping to 1, no noise: 0.010 in the order of the model, 1.431 in the order of the file
# Expected: arrays have names, and clients may answer in any order: a reply is refused if it has other names, and
#   FedAvg goes by names.
# Seen: FedAvgM and the server-side clipping of differential privacy (`aggregate_train` of each, in
#   serverapp/strategy) zip two to_numpy_ndarrays(), and so subtract the n-th array of the server from the n-th array
#   of the reply, whatever their names are. Arrays of the same shape, like those of the layers of a LoRA, are mixed up
#   without a message. The arrays have the reply's order afterwards, so that later rounds are right, with the damage
#   of the first one. (A reviewer of flwrlabs/flower#7757 says the same of another strategy, which is not merged.)
# Affects whoever goes on from a saved adapter: a safetensors file, as PEFT writes it, is sorted by names, in which
#   layer.10 comes before layer.2, so that models of more than ten layers meet this. Handing over
#   ArrayRecord(get_peft_model_state_dict(model)) of a model that has the file loaded helps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile torch==2.13.0 transformers==5.24.0 peft==0.21.2 \
  flwr==1.42.0 2> /dev/null
cat > "$folder/find.py" <<'PYTHON'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import peft
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, strategy
from flwr.supercore.task_identity import TaskIdentity
from safetensors.torch import load_file
from transformers import BertConfig, BertModel

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 12}
QUIET = {"fraction_evaluate": 0.0}
CLIENTS, ROUNDS = 2, 3


def new_model():
    """LoRA with random weights."""
    torch.manual_seed(0)
    base = BertModel(BertConfig(vocab_size=64, initializer_range=0.3, **SIZES), add_pooling_layer=False)
    config = peft.LoraConfig(r=4, lora_alpha=32, target_modules=["query", "value"], init_lora_weights=False)
    return peft.get_peft_model(base, config).eval()


def state(model):
    return peft.get_peft_model_state_dict(model)


def loss(model, node=None):
    """How far answers are from those that are wanted, of one client or of all."""
    found = model(TEXTS).last_hidden_state - WANTED
    return (found if node is None else found[node::CLIENTS]).square().mean()


class Here(Grid):
    """Clients in this process, which train the LoRA by one step in each round."""

    run = None

    def __init__(self):
        self.client = ClientApp()
        self.client.train()(self.train)

    def train(self, message, context):
        model = new_model()
        peft.set_peft_model_state_dict(model, message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.001)
        result = loss(model, context.node_id - 1)
        result.backward()
        optimizer.step()
        metrics = MetricRecord({"num-examples": 8, "train_loss": float(result)})
        content = RecordDict({"arrays": ArrayRecord(state(model)), "metrics": metrics})
        return Message(content, reply_to=message)

    def get_node_ids(self):
        return range(1, CLIENTS + 1)

    def send_and_receive(self, messages, *, timeout=None):
        contexts = [(one, Context(1, one.metadata.dst_node_id, {}, RecordDict(), {})) for one in messages]
        return [self.client(message, context) for message, context in contexts]

    def unused(self, *_):
        raise NotImplementedError

    set_run = create_message = push_messages = pull_messages = unused


def train(new_strategy, arrays):
    """The loss after some rounds from these arrays on."""
    result = new_strategy().start(Here(), ArrayRecord(arrays), ROUNDS)
    model = new_model()
    peft.set_peft_model_state_dict(model, result.arrays.to_torch_state_dict())
    with torch.no_grad():
        return float(loss(model))


STRATEGIES = {
    "FedAvg": lambda: strategy.FedAvg(**QUIET),
    "FedAdam": lambda: strategy.FedAdam(**QUIET, eta=0.001),
    "FedAvgM, momentum 0.9": lambda: strategy.FedAvgM(**QUIET, server_momentum=0.9),
    "FedAvgM, learning rate 0.5": lambda: strategy.FedAvgM(**QUIET, server_learning_rate=0.5),
    "clipping to 1, no noise": lambda: strategy.DifferentialPrivacyServerSideFixedClipping(
        strategy.FedAvg(**QUIET), 0.0, 1.0, CLIENTS
    ),
}
torch.set_num_threads(1)
TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
TEXTS = torch.randint(64, (16, 8), generator=torch.Generator().manual_seed(1))
model = new_model()
with torch.no_grad():
    answers = model(TEXTS).last_hidden_state
    WANTED = answers + torch.randn(answers.shape, generator=torch.Generator().manual_seed(2)) / 10
    before = float(loss(model))
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    saved = load_file(f"{folder}/adapter_model.safetensors")
same = all(torch.equal(saved[name], one) for name, one in state(model).items())
moved = int(np.sum(np.array(list(saved)) != np.array(list(state(model)))))
print(", ".join(f"{name} {version(name).split('+')[0]}" for name in ("flwr", "peft", "transformers", "torch")))
print(f"LoRA from its file: {len(saved)} arrays, of which {moved} are at other places than in the model", end="; ")
print(f"loss {before:.3f}, after {ROUNDS} rounds:")
failed = not same or moved == 0
for title, new_strategy in STRATEGIES.items():
    ordered, sorted_by_name = train(new_strategy, state(model)), train(new_strategy, saved)
    print(f"{title}: {ordered:.3f} in the order of the model, {sorted_by_name:.3f} in the order of the file")
    right = title in ("FedAvg", "FedAdam")
    failed |= ordered > 2 * before or (sorted_by_name > 10 * before) == right
sys.exit(bool(failed))
PYTHON
"$folder/venv/bin/python" "$folder/find.py" 2> /dev/null
