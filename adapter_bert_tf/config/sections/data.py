"""Which data a command reads: tasks, tables of the user's own, and questions."""

import dataclasses
import functools
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, setting
from adapter_bert_tf.tasks.own import DEV_SHARE

_CLASSIFIER = (Command.CLASSIFIER,)
_OWN_FILES = (Command.CLASSIFIER, Command.TAGGER)
_LABELLED = tuple(command for command in Command if command is not Command.ADAPT)
_table = functools.partial(
    setting, role=Role.READING, commands=_CLASSIFIER, only_with=("task_name", ("tsv",))
)
_question = functools.partial(setting, commands=(Command.SQUAD,))


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Which data a command reads, and how long its inputs are."""

    task_name: str | None = setting(
        None,
        "The task: a GLUE task (cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli, ax), one of "
        "the 17 tasks of Table 2 (sms_spam_collection, ...; a wrong name lists them), "
        "demo_factuality, demo_paraphrase, or tsv for your own table. For several tasks together: "
        "names separated by commas (rte or rte=FOLDER), or a YAML file of tasks. A tagger takes "
        "only several, with names of your choice.",
        Role.TASK,
        commands=_OWN_FILES,
    )
    data_dir: str | None = setting(
        None,
        "Folder with the task's files (local or gs://).",
        Role.TASK,
        commands=_LABELLED,
        path="read",
    )
    data_source: Literal["tsv", "tfds"] = setting(
        "tsv",
        "tsv: the files in --data_dir; tfds: TensorFlow Datasets, which have GLUE and SQuAD and "
        "keep their files in --data_dir.",
        Role.TASK,
        commands=_LABELLED,
    )
    adapter_name: str | None = setting(
        None,
        "Name of the task in the adapter. Default: the task's name; for your own table the name of "
        "its folder, --data_dir; for plain text that of the first file.",
        Role.NAME,
        commands=(*_OWN_FILES, Command.ADAPT),
    )
    max_train_examples: int | None = setting(
        None,
        "Train on a seeded, stratified subset of this size.",
        Role.READING,
        commands=_LABELLED,
        lowest=2,
    )
    max_seq_length: int = setting(
        128,
        "Longest input in word pieces; longer ones are cut. Plain text is packed to this length.",
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


@dataclasses.dataclass(frozen=True)
class TableConfig:
    """How your own table is read (`--task_name=tsv`)."""

    text_a_column: str | None = _table(
        None, "For --task_name=tsv: column of the text, by name or by number from 0."
    )
    text_b_column: str | None = _table(None, "Column of the second text, for pairs.")
    label_column: str | None = _table(
        None,
        "Column of the label, or of the score for regression. With --multi_label also several "
        "columns of 0 and 1, separated by commas.",
    )
    delimiter: str | None = _table(
        None,
        "What separates the cells. Default: what the first rows show; else a tab, in .csv files a "
        "comma.",
    )
    header: bool = _table(True, "Whether the first row names the columns.")
    quoted: bool | None = _table(None, "Whether cells may be quoted. Default: only in .csv files.")
    encoding: str = _table("utf-8", "Encoding of the files.", commands=_OWN_FILES)
    skip_bad_rows: bool = _table(
        False,
        "Leave out rows with too few or too many cells, and count them. Default: such a row is an "
        "error.",
    )
    in_memory_mb: int = _table(
        256,
        "Training files of more MB, unpacked, are read once, and their tokenized rows kept on the "
        "local disk (--features_dir) instead of in memory. A .gz or .parquet file counts four "
        "times.",
        lowest=0,
    )
    dev_share: float = _table(
        DEV_SHARE,
        "Share of the training data, drawn with --split_seed, that becomes the dev set of a table "
        "without a dev file. 0: none; leave out --do_eval to train on all rows. Of plain text: "
        "evenly spread sequences, at most 2,000.",
        role=Role.TASK,
        commands=(*_CLASSIFIER, Command.ADAPT),
        defaults={Command.ADAPT: 0.01},
        lowest=0.0,
        highest=0.9,
    )
    task_type: str | None = _table(
        None,
        "Type of the label: classification, regression or multi_label. Default: classification.",
    )
    multi_label: bool = _table(
        False,
        "Same as --task_type=multi_label: an example has any number of labels, separated by |; an "
        "empty cell has none.",
    )
    regression: bool = _table(
        False, "Same as --task_type=regression: predict a score instead of a class."
    )


@dataclasses.dataclass(frozen=True)
class QuestionsConfig:
    """Question answering with `run_squad.py`."""

    train_file: str | None = setting(
        None,
        "File to train on; SQuAD JSON for questions, otherwise by default the train file in "
        "--data_dir. Of --task_name=tsv also several of one layout: folders, and patterns such as "
        "'part-*.csv.gz', separated by commas.",
        Role.TASK,
        commands=(Command.SQUAD, *_OWN_FILES),
        path="read",
        patterns=_CLASSIFIER,
        in_python=False,
    )
    predict_file: str | None = _question(
        None, "SQuAD JSON to answer; scored if it has answers.", Role.ASKED, path="read"
    )
    doc_stride: int = _question(
        128, "Word pieces between the starts of two windows.", Role.READING, lowest=1
    )
    max_query_length: int = _question(
        64, "Longest question in word pieces; longer ones are cut.", Role.READING, lowest=1
    )
    version_2_with_negative: bool = _question(
        False, "Some questions have no answer (SQuAD 2.0).", Role.READING
    )
    n_best_size: int = _question(20, "Answers kept for each question.", Role.DECODING, lowest=1)
    max_answer_length: int = _question(
        30, "Longest answer in word pieces.", Role.DECODING, lowest=1
    )
    null_score_diff_threshold: float = _question(
        0.0,
        "Leave a question unanswered if the score for this exceeds that of the best answer by more "
        "than this threshold.",
        Role.DECODING,
        only_with=("version_2_with_negative", (True,)),
    )
    features_dir: str | None = _question(
        None,
        "Folder that keeps windows, packed plain text, or the rows of tables that are not in "
        "memory (--in_memory_mb), between runs. Default: OUTPUT_DIR/features.",
        Role.CACHE,
        commands=(*_CLASSIFIER, Command.SQUAD, Command.ADAPT),
        path="written",
    )
    question: str | None = _question(
        None, "Answer this one question, with --context and --do_predict.", Role.ONE_QUESTION
    )
    context: str | None = _question(
        None, "The text that holds the answer to --question.", Role.ONE_QUESTION
    )
    verbose_logging: bool = _question(False, "Not used; kept for old command lines.", Role.UNUSED)
