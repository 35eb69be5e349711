"""Plain text with `run_adapt.py`."""

import dataclasses
import functools
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, setting

_plain_text = functools.partial(setting, commands=(Command.ADAPT,))
_files = functools.partial(
    _plain_text, role=Role.TASK, path="read", patterns=(Command.ADAPT,), common=True
)


@dataclasses.dataclass(frozen=True)
class PlainTextConfig:
    """Plain text (`run_adapt.py`): files, texts and masks."""

    text_files: str | None = _files(
        None,
        "Text to train on: files, plain or .gz, folders (their .txt and .txt.gz files) and "
        "patterns such as 'part-*.txt.gz', separated by commas.",
    )
    dev_files: str | None = _files(
        None, "Text to evaluate on, as --text_files. Default: --dev_share of the text."
    )
    text_unit: Literal["line", "paragraph"] = _plain_text(
        "line",
        "What a text is: a line, or a paragraph, which ends at an empty line. [SEP] separates "
        "texts.",
        Role.READING,
        common=True,
    )
    mask_share: float = _plain_text(
        0.15,
        "Share of the word pieces that are predicted: 80% of them are masked, 10% replaced, 10% "
        "unchanged.",
        Role.READING,
        lowest=0.0,
        highest=1.0,
    )
    whole_word_masking: bool = _plain_text(
        False, "Choose all pieces of a word together.", Role.READING
    )
