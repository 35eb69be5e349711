"""How the weights are trained, when results are measured, and which weights are kept."""

import dataclasses
import functools
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.sections.model import MULTITASK_TUNINGS, SEVERAL_TASKS
from adapter_bert_tf.config.setting import Command, setting

_CLASSIFIER = (Command.CLASSIFIER,)
_LABELLED = tuple(command for command in Command if command is not Command.ADAPT)
_training = functools.partial(setting, role=Role.TRAINING)


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
        commands=SEVERAL_TASKS,
        only_with=("init_from", ()),
    )
    fuse: str | None = setting(
        None,
        "Members of --tuning=fusion: adapter directories or folders of runs, separated by commas; "
        "NAME=DIR gives a member another name. The fusion's directory holds copies of them.",
        Role.START,
        path="read",
        several=True,
        only_with=("tuning", ("fusion",)),
    )
    stack: str | None = setting(
        None,
        "Train on top of the adapter in this directory, of a language or a domain, which stays "
        "frozen; or apply what was trained so, with this adapter below it. The directory is only "
        "read.",
        Role.START,
        path="read",
    )
    train_batch_size: int = _training(
        32, "Examples in a training step, over all replicas.", lowest=1
    )
    gradient_accumulation_steps: int = _training(
        1,
        "Number of batches of --train_batch_size in one step. They are computed one after the "
        "other, in the memory of one.",
        lowest=1,
    )
    learning_rate: float | None = _training(
        None,
        "Peak learning rate. Default: 1e-3; --adapter=ia3: 3e-3; prefix, mam and unipelt: 3e-4; "
        "hyperformer and hyperformer++: 3e-4; methods that train the base's layers: 5e-5, pals: "
        "2e-5.",
    )
    num_train_epochs: float = _training(
        3.0, "Passes over the training data.", defaults={Command.ADAPT: 1.0}, lowest=0.0
    )
    warmup_proportion: float = _training(
        0.1, "Proportion of the steps in which the learning rate rises.", lowest=0.0, highest=1.0
    )
    optimizer: Literal["adamw", "adamw_unclipped", "adapter_bert"] = _training(
        "adamw",
        "adamw: AdamW with bounded updates; adamw_unclipped: without the bound; adapter_bert: "
        "adapter-bert's optimizer, without bias correction.",
    )
    weight_decay: float = _training(
        0.01, "AdamW's weight decay. LayerNorms, biases and (IA)^3 do not decay.", lowest=0.0
    )
    dropout: float | None = _training(
        None,
        "Dropout rate of base and head in training, for hidden states and attention. Default: the "
        "base's own, usually 0.1.",
        lowest=0.0,
        highest=0.999,
    )
    sampling_temperature: str = _training(
        "10",
        "T, for several tasks: a task with N examples is drawn in proportion to N^(1/T). 1: in "
        "proportion to N; inf: equally often; annealed: from N to N^0.2 over the epochs.",
        commands=SEVERAL_TASKS,
        only_with=("tuning", MULTITASK_TUNINGS),
    )
    class_weights: str | None = _training(
        None,
        "Weight of a training example, by its label. balanced: all classes have the same total "
        "weight; LABEL=WEIGHT,...: the weights of these labels, 1 for all others.",
        commands=_CLASSIFIER,
    )
    label_smoothing: float = _training(
        0.0,
        "Proportion of the target probability that training distributes over all labels.",
        commands=_CLASSIFIER,
        lowest=0.0,
        highest=0.999,
    )
    group_by_length: Literal["epoch", "run", "no"] = _training(
        "epoch",
        "Training examples that are sorted by length together, so that a batch has similar "
        "lengths. epoch: at most a quarter of an epoch; run: 64 batches, also across epochs, as in "
        "earlier versions; no: none. No effect with --pad_to=0.",
        commands=_LABELLED,
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


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """When results are measured, and which weights are kept."""

    eval_every_steps: int | None = _training(
        None, "Steps between evaluations on the dev set during training. Default: none.", lowest=1
    )
    max_eval_examples: int | None = _training(
        None,
        "Most dev examples that an evaluation during training scores, a seeded, stratified subset "
        "(of several tasks, for each). The last evaluation scores all.",
        lowest=2,
        only_with=("eval_every_steps", ()),
        or_in_sweep="asha",
    )
    metric: str | None = setting(
        None,
        "Metric that selects weights and runs, and is named on the adapter's card: accuracy, f1, "
        "macro_f1, mcc; for label sets micro_f1, macro_f1, accuracy; for scores pearson, spearman; "
        "for questions exact_match, f1; for tags f1, precision, recall, strict_f1, accuracy, for "
        "plain ones macro_f1, accuracy; for masked words log_likelihood, accuracy. Default: the "
        "first that the task reports.",
        Role.METRIC,
    )
    keep: Literal["last", "best"] = _training(
        "last",
        "Which weights are kept: the last, or the best on dev by --metric.",
        only_with=("eval_every_steps", ()),
    )
    patience: int | None = _training(
        None, "Stop after this many evaluations in a row without improvement.", lowest=1
    )
    eval_batch_size: int = setting(8, "Examples in an evaluation step.", Role.PACE, lowest=1)
    predict_batch_size: int = setting(
        8, "Examples in a prediction step.", Role.PACE, commands=_LABELLED, lowest=1
    )
