"""Which data a command reads, and how long its inputs are."""

import dataclasses
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, setting

_CLASSIFIER = (Command.CLASSIFIER,)


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Which data a command reads, and how long its inputs are."""

    task_name: str | None = setting(
        None,
        "The task: a GLUE task (cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli, ax), one of "
        "the 17 tasks of Table 2 (sms_spam_collection, ...; a wrong name lists them), "
        "demo_factuality, demo_paraphrase, or tsv for your own table. For several tasks together: "
        "names separated by commas (rte or rte=FOLDER), or a YAML file of tasks.",
        Role.TASK,
        commands=_CLASSIFIER,
    )
    data_dir: str | None = setting(
        None, "Folder with the task's files (local or gs://).", Role.TASK, path="read"
    )
    data_source: Literal["tsv", "tfds"] = setting(
        "tsv",
        "tsv: the files in --data_dir; tfds: TensorFlow Datasets, which have GLUE and SQuAD and "
        "keep their files in --data_dir.",
        Role.TASK,
    )
    adapter_name: str | None = setting(
        None,
        "Name of the task in the adapter. Default: the task's name; for your own table the name of "
        "its folder, --data_dir.",
        Role.NAME,
        commands=_CLASSIFIER,
    )
    max_train_examples: int | None = setting(
        None, "Train on a seeded, stratified subset of this size.", Role.READING, lowest=2
    )
    max_seq_length: int = setting(
        128,
        "Longest input in word pieces; longer ones are cut.",
        Role.READING,
        defaults={Command.SQUAD: 384},
        lowest=5,
    )
    split_seed: int = setting(
        0,
        "Seed of the random split, for data without a published split.",
        Role.TASK,
        commands=_CLASSIFIER,
        lowest=0,
    )
    folds: int | None = setting(
        None,
        "Cross-validation: splits the training data into this many parts and runs once for each, "
        "with that part as the dev set. Reports mean and range, and writes one adapter for each "
        "part.",
        Role.TASK,
        commands=_CLASSIFIER,
        lowest=2,
        highest=1000,
    )
    fold: int | None = setting(
        None,
        "Run only this part of --folds, counted from 0.",
        Role.READING,
        commands=_CLASSIFIER,
        lowest=0,
        only_with=("folds", ()),
    )
