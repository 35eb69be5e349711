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
        "Start training from the adapter in this directory, with its method: adapters, "
        "LayerNorms, pooler, and the head too if the labels are the same. It is only read.",
        Role.START,
        path="read",
    )
    init_task: str | None = setting(
        None,
        "The task of --init_from=DIR, of several, that a new task begins as. Default: the mean of "
        "a HyperFormer's task embeddings; what all tasks share.",
        Role.START,
        commands=_CLASSIFIER,
        only_with=("init_from", ()),
    )
    fuse: str | None = setting(
        None,
        "Adapter directories that --tuning=fusion attends to, separated by commas; NAME=DIR gives "
        "one another name. They are only read, and copied into the fusion's own directory.",
        Role.START,
        path="read",
        several=True,
        only_with=("tuning", ("fusion",)),
    )
    train_batch_size: int = setting(32, "Examples a training step.", Role.TRAINING, lowest=1)
    gradient_accumulation_steps: int = setting(
        1,
        "This many batches of --train_batch_size, computed one after the other, make one step: a "
        "batch that many times as large, in the memory of one.",
        Role.TRAINING,
        lowest=1,
    )
    learning_rate: float | None = setting(
        None,
        "Peak learning rate. Default: 5e-5 where the base's layers are trained (pals: 2e-5), else "
        "1e-3 (hyperformer and hyperformer++: 3e-4).",
        Role.TRAINING,
    )
    num_train_epochs: float = setting(
        3.0, "Passes over the training data.", Role.TRAINING, lowest=0.0
    )
    warmup_proportion: float = setting(
        0.1,
        "Share of the steps with rising learning rate.",
        Role.TRAINING,
        lowest=0.0,
        highest=1.0,
    )
    optimizer: Literal["adamw", "adamw_unclipped", "adapter_bert"] = setting(
        "adamw",
        "AdamW with bounded updates; without the bound; adapter-bert's, without bias correction.",
        Role.TRAINING,
    )
    weight_decay: float = setting(
        0.01,
        "Share of each weight that a step subtracts, times the learning rate; LayerNorms and "
        "biases do not decay.",
        Role.TRAINING,
        lowest=0.0,
    )
    dropout: float | None = setting(
        None,
        "Dropout rate of base and head in training, of hidden states and of attention. Default: "
        "the base's own, 0.1 for most.",
        Role.TRAINING,
        lowest=0.0,
        highest=0.999,
    )
    sampling_temperature: str = setting(
        "10",
        "For several tasks: a task of N examples is drawn in proportion to N^(1/T). 1: in "
        "proportion to N; inf: equally often; annealed: from N to N^0.2 over the epochs.",
        Role.TRAINING,
        commands=_CLASSIFIER,
        only_with=("tuning", MULTITASK_TUNINGS),
    )
    class_weights: str | None = setting(
        None,
        "Weight of a training example, by its label: balanced, so that all classes have the same "
        "total weight, or LABEL=WEIGHT,... (1 where not named).",
        Role.TRAINING,
        commands=_CLASSIFIER,
    )
    label_smoothing: float = setting(
        0.0,
        "Share of the probability that the true label gives to all labels, in training.",
        Role.TRAINING,
        commands=_CLASSIFIER,
        lowest=0.0,
        highest=0.999,
    )
    group_by_length: Literal["epoch", "run", "no"] = setting(
        "epoch",
        "From which training examples batches of similar lengths are formed: those of a quarter of "
        "one epoch, of 64 batches of the run (as in earlier versions: a small set comes several "
        "times), or no such batches. No effect with --pad_to=0.",
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
        "output in a temporary file (below TMPDIR): 4 bytes x hidden size x word pieces.",
        Role.PACE,
        commands=_CLASSIFIER,
        only_with=("do_train", (True,)),
    )
    save_checkpoints_steps: int = setting(1000, "Steps between checkpoints.", Role.PACE, lowest=1)
