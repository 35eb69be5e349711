"""How the weights are trained."""

import dataclasses
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.sections.method import MULTITASK_TUNINGS
from adapter_bert_tf.config.setting import Command, setting

_CLASSIFIER = (Command.CLASSIFIER,)


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How the weights are trained."""

    init_from: str | None = setting(
        None,
        "Start training from the adapter in this directory: its method, adapters, LayerNorms and "
        "pooler, and its head if the labels are the same. The directory is only read.",
        Role.START,
        path="read",
    )
    init_task: str | None = setting(
        None,
        "If --init_from=DIR has several tasks: the one from which a new task starts. Default: what "
        "all tasks share; for a HyperFormer the mean task embedding.",
        Role.START,
        commands=_CLASSIFIER,
        only_with=("init_from", ()),
    )
    fuse: str | None = setting(
        None,
        "Members of --tuning=fusion: adapter directories, separated by commas; NAME=DIR gives a "
        "member another name. The fusion's directory holds copies of them.",
        Role.START,
        path="read",
        several=True,
        only_with=("tuning", ("fusion",)),
    )
    train_batch_size: int = setting(
        32, "Examples in a training step, over all replicas.", Role.TRAINING, lowest=1
    )
    gradient_accumulation_steps: int = setting(
        1,
        "Number of batches of --train_batch_size in one step. They are computed one after the "
        "other, in the memory of one.",
        Role.TRAINING,
        lowest=1,
    )
    learning_rate: float | None = setting(
        None,
        "Peak learning rate. Default: 1e-3; hyperformer and hyperformer++: 3e-4; methods that "
        "train the base's layers: 5e-5, pals: 2e-5.",
        Role.TRAINING,
    )
    num_train_epochs: float = setting(
        3.0, "Passes over the training data.", Role.TRAINING, lowest=0.0
    )
    warmup_proportion: float = setting(
        0.1,
        "Proportion of the steps in which the learning rate rises.",
        Role.TRAINING,
        lowest=0.0,
        highest=1.0,
    )
    optimizer: Literal["adamw", "adamw_unclipped", "adapter_bert"] = setting(
        "adamw",
        "adamw: AdamW with bounded updates; adamw_unclipped: without the bound; adapter_bert: "
        "adapter-bert's optimizer, without bias correction.",
        Role.TRAINING,
    )
    weight_decay: float = setting(
        0.01,
        "AdamW's weight decay. LayerNorms and biases do not decay.",
        Role.TRAINING,
        lowest=0.0,
    )
    dropout: float | None = setting(
        None,
        "Dropout rate of base and head in training, for hidden states and attention. Default: the "
        "base's own, usually 0.1.",
        Role.TRAINING,
        lowest=0.0,
        highest=0.999,
    )
    sampling_temperature: str = setting(
        "10",
        "T, for several tasks: a task with N examples is drawn in proportion to N^(1/T). 1: in "
        "proportion to N; inf: equally often; annealed: from N to N^0.2 over the epochs.",
        Role.TRAINING,
        commands=_CLASSIFIER,
        only_with=("tuning", MULTITASK_TUNINGS),
    )
    class_weights: str | None = setting(
        None,
        "Weight of a training example, by its label. balanced: all classes have the same total "
        "weight; LABEL=WEIGHT,...: the weights of these labels, 1 for all others.",
        Role.TRAINING,
        commands=_CLASSIFIER,
    )
    label_smoothing: float = setting(
        0.0,
        "Proportion of the target probability that training distributes over all labels.",
        Role.TRAINING,
        commands=_CLASSIFIER,
        lowest=0.0,
        highest=0.999,
    )
    group_by_length: Literal["epoch", "run", "no"] = setting(
        "epoch",
        "Training examples that are sorted by length together, so that a batch has similar "
        "lengths. epoch: at most a quarter of an epoch; run: 64 batches, also across epochs, as in "
        "earlier versions; no: none. No effect with --pad_to=0.",
        Role.TRAINING,
        earlier="run",
    )
    seed: int = setting(
        0,
        "Seed of initial weights, data order and dropout.",
        Role.SEED,
        lowest=0,
        highest=2**32 - 1,
    )
    cache_frozen: bool = setting(
        False,
        "Compute the layers of --frozen_layers once for every training example, and keep their "
        "outputs in a temporary file (in TMPDIR): 4 bytes x hidden size x word pieces.",
        Role.PACE,
        commands=_CLASSIFIER,
        only_with=("do_train", (True,)),
    )
    save_checkpoints_steps: int = setting(1000, "Steps between checkpoints.", Role.PACE, lowest=1)
