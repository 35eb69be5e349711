"""Flags of `run_classifier.py`: where its data comes from, and how a table is read."""

import functools

from adapter_bert_tf.config.flags_several import SEVERAL as _SEVERAL
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Command, Row

_OWN = ("task_name", ("tsv",))
_row = functools.partial(Row, commands=(Command.CLASSIFIER,))

ROWS = (
    _row(
        "task_name",
        "string",
        None,
        "The task: a GLUE task (cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, "
        "rte, wnli, ax), one of the 17 of Table 2 (sms_spam_collection, ...; a wrong name lists "
        "them), demo_factuality, demo_paraphrase, or tsv for a table of your own. Several "
        "together: with commas between (rte or rte=FOLDER), or a YAML file of tasks.",
        Role.TASK,
    ),
    _row(
        "sampling_temperature",
        "string",
        "10",
        "Of several tasks: one of N examples is drawn in proportion to N^(1/T). 1: as the numbers "
        "are; inf: equally often; annealed: from N to N^0.2 over the epochs.",
        Role.TRAINING,
        only_with=("tuning", _SEVERAL),
    ),
    _row(
        "class_weights",
        "string",
        None,
        "How much a training example counts, by its label: balanced, so that all classes count "
        "alike, or LABEL=WEIGHT,... (1 where not named).",
        Role.TRAINING,
    ),
    _row(
        "label_smoothing",
        "real",
        0.0,
        "Share of the probability that the right label gives away to all labels, in training.",
        Role.TRAINING,
        lowest=0.0,
        highest=0.999,
    ),
    _row(
        "cache_frozen",
        "boolean",
        False,
        "Compute the layers of --frozen_layers once for every training example, and keep what they "
        "give in a temporary file (below TMPDIR): 4 bytes x hidden size x word pieces.",
        Role.PACE,
        only_with=("do_train", (True,)),
    ),
    _row(
        "adapter_name",
        "string",
        None,
        "What the adapter calls its task. Default: the task's name; of a table of your own that of "
        "its folder, --data_dir.",
        Role.NAME,
    ),
    _row(
        "split_seed",
        "integer",
        0,
        "Of the random division, where the data comes undivided.",
        Role.TASK,
        lowest=0,
    ),
    _row(
        "folds",
        "integer",
        None,
        "Cross-validation: the training data in so many parts, a run for each, which is its dev "
        "set. Reports mean and range, and leaves no adapter but those of the runs.",
        Role.TASK,
        lowest=2,
        highest=1000,
    ),
    _row(
        "fold",
        "integer",
        None,
        "Only the run of this one of --folds, from 0.",
        Role.READING,
        lowest=0,
        only_with=("folds", ()),
    ),
    _row(
        "text_a_column",
        "string",
        None,
        "For --task_name=tsv: the text, by name or number from 0.",
        Role.READING,
        only_with=_OWN,
    ),
    _row(
        "text_b_column",
        "string",
        None,
        "The second text, if there is one.",
        Role.READING,
        only_with=_OWN,
    ),
    _row(
        "label_column",
        "string",
        None,
        "The label, or the score with --regression.",
        Role.READING,
        only_with=_OWN,
    ),
    _row(
        "delimiter",
        "string",
        None,
        "Default: a tab; in .csv files a comma.",
        Role.READING,
        only_with=_OWN,
    ),
    _row(
        "header",
        "boolean",
        True,
        "Whether the first row names the columns.",
        Role.READING,
        only_with=_OWN,
    ),
    _row(
        "quoted",
        "boolean",
        None,
        "Whether cells may be quoted. Default: in .csv files.",
        Role.READING,
        only_with=_OWN,
    ),
    _row("encoding", "string", "utf-8", "Encoding of the files.", Role.READING, only_with=_OWN),
    _row(
        "skip_bad_rows",
        "boolean",
        False,
        "Leave out and count rows with too few cells or too many. Default: they are an error.",
        Role.READING,
        only_with=_OWN,
    ),
    _row(
        "multi_label",
        "boolean",
        False,
        "An example has any number of labels, with | between them; none where the cell is empty.",
        Role.READING,
        only_with=_OWN,
    ),
    _row(
        "regression",
        "boolean",
        False,
        "Predict a score instead of a class.",
        Role.READING,
        only_with=_OWN,
    ),
)
