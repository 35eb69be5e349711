"""How your own table is read (`--task_name=tsv`)."""

import dataclasses
import functools

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, setting

_setting = functools.partial(
    setting,
    role=Role.READING,
    commands=(Command.CLASSIFIER,),
    only_with=("task_name", ("tsv",)),
)


@dataclasses.dataclass(frozen=True)
class TableConfig:
    """How your own table is read (`--task_name=tsv`)."""

    text_a_column: str | None = _setting(
        None, "For --task_name=tsv: column of the text, by name or by number from 0."
    )
    text_b_column: str | None = _setting(None, "Column of the second text, for pairs.")
    label_column: str | None = _setting(
        None, "Column of the label, or of the score for regression."
    )
    delimiter: str | None = _setting(
        None, "What separates the cells. Default: a tab; in .csv files a comma."
    )
    header: bool = _setting(True, "Whether the first row names the columns.")
    quoted: bool | None = _setting(
        None, "Whether cells may be quoted. Default: only in .csv files."
    )
    encoding: str = _setting("utf-8", "Encoding of the files.")
    skip_bad_rows: bool = _setting(
        False,
        "Leave out rows with too few or too many cells, and count them. Default: such a row is an "
        "error.",
    )
    task_type: str | None = _setting(
        None,
        "Type of the label: classification, regression or multi_label. Default: classification.",
    )
    multi_label: bool = _setting(
        False,
        "Same as --task_type=multi_label: an example has any number of labels, separated by |; an "
        "empty cell has none.",
    )
    regression: bool = _setting(
        False, "Same as --task_type=regression: predict a score instead of a class."
    )
