"""Texts of Python as files that `run_adapt.py` reads."""

from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.data.plain_text.files import LONGEST_TEXT
from adapter_bert_tf.errors import Conflict, InputError, error_context
from adapter_bert_tf.jobs.python_data import Given, PythonData
from adapter_bert_tf.predict.inputs import listed
from adapter_bert_tf.sanitize import preview

# Word pieces are the same without them: a line feed is white space, and a byte 0 is left out.
NOT_IN_LINES = {0: None, ord("\n"): " "}


def data_of(given: Given, options: Mapping[str, Any]) -> PythonData:
    """Returns the plain text of what `abt.train` is given, a line a text. Raises `InputError`.

    `given.texts` and `given.dev` are lists of texts; None where `options` name files instead.
    """
    if given.labels is not None or given.others is not None or any(given.columns):
        raise Conflict(
            "Plain text has no labels, no second texts and no columns. Leave labels, others, "
            "text_a_column and text_b_column out; of a DataFrame give the column of texts.",
            "text_a_column",
            "text_b_column",
        )
    files, paths = dict[str, bytes](), dict[str, str]()
    lists = {"text_files": ("texts", given.texts), "dev_files": ("dev", given.dev)}
    for setting, (name, texts) in lists.items():
        if texts is None:
            continue
        if options.get(setting) is not None:
            raise Conflict(f"Give {name} or {setting}, not both.", setting)
        paths[setting] = f"{setting.removesuffix('_files')}.txt"
        with error_context(name):
            files[paths[setting]] = _lines(texts)
    if files and options.get("text_unit") is not None:
        raise Conflict("text_unit is for files; each text of a list is one.", "text_unit")
    return PythonData(files, {}, paths)


def _lines(texts: Any) -> bytes:
    values = listed(texts)
    if not isinstance(values, list | tuple):
        raise InputError(f"Plain text is a list of texts. Received: {preview(texts)}")
    lines = []
    for number, text in enumerate(values):
        if not isinstance(text, str):
            raise InputError(f"A text is a string. Received, at {number}: {preview(text)}")
        line = text.translate(NOT_IN_LINES).encode("utf-8", "replace")
        if len(line) > LONGEST_TEXT:
            raise InputError(
                f"A text has at most {LONGEST_TEXT:,} bytes; divide it. Received, at {number}: "
                f"{len(line):,} bytes"
            )
        lines.append(line + b"\n")
    return b"".join(lines)
