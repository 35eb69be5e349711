"""Flags of `run_squad.py`, named as in google-research/bert."""

import functools

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Command, Row

_row = functools.partial(Row, commands=(Command.SQUAD,))

ROWS = (
    _row("train_file", "string", None, "SQuAD JSON to train on.", Role.TASK, path="read"),
    _row(
        "predict_file",
        "string",
        None,
        "SQuAD JSON to answer; scored if it has answers.",
        Role.ASKED,
        path="read",
    ),
    _row(
        "doc_stride",
        "integer",
        128,
        "Word pieces between the starts of two windows.",
        Role.READING,
        lowest=1,
    ),
    _row(
        "max_query_length",
        "integer",
        64,
        "Longest question in word pieces; longer ones are cut.",
        Role.READING,
        lowest=1,
    ),
    _row("n_best_size", "integer", 20, "Answers kept for each question.", Role.DECODING, lowest=1),
    _row(
        "max_answer_length",
        "integer",
        30,
        "Longest answer in word pieces.",
        Role.DECODING,
        lowest=1,
    ),
    _row(
        "version_2_with_negative",
        "boolean",
        False,
        "Some questions have no answer (SQuAD 2.0).",
        Role.READING,
    ),
    _row(
        "null_score_diff_threshold",
        "real",
        0.0,
        "No answer, if its score is above the best answer's by more than this.",
        Role.DECODING,
        only_with=("version_2_with_negative", (True,)),
    ),
    _row(
        "features_dir",
        "string",
        None,
        "Where windows are kept between runs. Default: OUTPUT_DIR/features.",
        Role.CACHE,
        path="written",
    ),
    _row(
        "question",
        "string",
        None,
        "Answer this one question, with --context and --do_predict.",
        Role.ONE_QUESTION,
    ),
    _row(
        "context",
        "string",
        None,
        "The text that holds the answer to --question.",
        Role.ONE_QUESTION,
    ),
    _row("verbose_logging", "boolean", False, "Not used; kept for old command lines.", Role.UNUSED),
)
