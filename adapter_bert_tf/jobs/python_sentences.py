"""Words and tags of Python as files that `run_tagger.py` reads."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.errors import Conflict, InputError, error_context
from adapter_bert_tf.jobs.python_data import Given, PythonData
from adapter_bert_tf.predict.inputs import listed
from adapter_bert_tf.sanitize import preview

RULE = 'Words and tags are lists of lists: [["Anna", "sings"]] and [["B-PER", "O"]].'


def data_of(given: Given, options: Mapping[str, Any]) -> PythonData:
    """Returns the sentences of what `abt.train` is given. Raises `InputError`.

    `given.texts` are lists of words, and `given.labels` lists of their tags.
    """
    if given.others is not None or any(column is not None for column in given.columns):
        raise Conflict(
            "Sentences of words have no second texts and no columns. Leave others, text_a_column "
            "and text_b_column out.",
            "text_a_column",
            "text_b_column",
        )
    files = {"train.jsonl": _lines(given.texts, given.labels)}
    if given.dev is not None:
        dev = listed(given.dev)
        if not isinstance(dev, list | tuple) or len(dev) != 2:
            raise InputError(f"dev is (words, tags). Received: {preview(given.dev)}")
        with error_context("dev"):
            files["dev.jsonl"] = _lines(*dev)
    return PythonData(files, {"do_eval": given.dev is not None})


def _lines(words: Any, tags: Any) -> bytes:
    words, tags = _lists(words), _lists(tags)
    if len(words) != len(tags):
        raise InputError(
            f"Each sentence has a list of tags. Received: {len(words)} lists of words and "
            f"{len(tags)} of tags."
        )
    lines = []
    for number, (sentence, own) in enumerate(zip(words, tags, strict=True)):
        if len(sentence) != len(own):
            raise InputError(
                f"Each word has one tag. Received, at {number}: {len(sentence)} words and "
                f"{len(own)} tags."
            )
        lines.append(json.dumps({"tokens": sentence, "tags": own}) + "\n")
    return "".join(lines).encode()


def _lists(values: Any) -> list[list[str]]:
    """Returns lists of texts. Raises `InputError` for anything else."""
    sentences = listed(values)
    if not isinstance(sentences, list | tuple):
        raise InputError(f"{RULE} Received: {preview(values)}")
    checked = []
    for number, sentence in enumerate(sentences):
        row = listed(sentence)
        if not isinstance(row, Sequence) or isinstance(row, str | bytes):
            raise InputError(f"{RULE} Received, at {number}: {preview(sentence)}")
        if wrong := [text for text in row if not isinstance(text, str)]:
            raise InputError(
                f"Words and tags are texts. Received, at {number}: {preview(wrong[0])}"
            )
        checked.append([text.encode("utf-8", "replace").decode() for text in row])
    return checked
