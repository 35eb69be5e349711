"""Tags of words with `run_tagger.py`."""

import dataclasses
import functools
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, setting

_tagging = functools.partial(setting, commands=(Command.TAGGER,))
_file = functools.partial(_tagging, in_python=False)
_split_file = functools.partial(
    _file,
    commands=(Command.TAGGER, Command.CLASSIFIER),
    path="read",
    patterns=(Command.CLASSIFIER,),
    common=True,
)


@dataclasses.dataclass(frozen=True)
class TaggingConfig:
    """Tags of words (`run_tagger.py`): files, columns, windows and decoding."""

    dev_file: str | None = _split_file(
        None,
        "File to evaluate on. Default: the dev file in --data_dir. Of --task_name=tsv as "
        "--train_file.",
        Role.TASK,
    )
    test_file: str | None = _split_file(
        None,
        "File to predict, scored if it has labels. Default: the test file in --data_dir. Of "
        "--task_name=tsv as --train_file.",
        Role.ASKED,
    )
    tag_column: str | None = _file(
        None,
        "Column of the tags: a number from 0, or a key of JSON lines. Default: the last column; "
        "the key tags.",
        Role.READING,
        common=True,
    )
    word_column: str | None = _file(
        None, "Column of the words. Default: the first column; the key tokens.", Role.READING
    )
    separator: str | None = _file(
        None, "What separates the columns; \\t is a tab. Default: blanks and tabs.", Role.READING
    )
    comments: bool = _file(False, "Whether lines that begin with `# ` are comments.", Role.READING)
    scheme: Literal["auto", "IOB1", "IOB2", "BIOES", "BILOU", "IO", "plain"] = _tagging(
        "auto",
        "Scheme of the tags; plain: they mark no entities, as parts of speech. auto: what the "
        "training file shows, or what a saved adapter knows.",
        Role.READING,
    )
    stride: int = _tagging(
        32,
        "Word pieces that two windows of a long sentence share, as context; at most half of a "
        "window.",
        Role.READING,
        lowest=0,
    )
    decoding: Literal["viterbi", "argmax"] = _tagging(
        "viterbi",
        "viterbi: the most probable valid sequence of tags; argmax: the most probable tag of each "
        "word.",
        Role.DECODING,
    )
    tfds_name: str | None = _file(
        None,
        "Dataset of TensorFlow Datasets: conll2003 or wikiann/LANGUAGE.",
        Role.TASK,
        only_with=("data_source", ("tfds",)),
    )
