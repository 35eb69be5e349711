"""Tagged words from TensorFlow Datasets: `conll2003`, `wikiann/*` and others of their features."""

from __future__ import annotations

import os
from typing import Any

from adapter_bert_tf.data.tagging.tag_format import Sentence, TagFormat
from adapter_bert_tf.data.tfds import builder_rows, prepared_builder
from adapter_bert_tf.errors import NotFound
from adapter_bert_tf.sanitize import preview

SPLITS = {"train": ("train",), "dev": ("validation", "dev"), "test": ("test",)}
TAGS = ("tags", "ner")  # Names of the feature with tags, unless the format names one.


def read_tfds_tags(
    name: str, folder: str | None, split: str, form: TagFormat
) -> tuple[str, list[Sentence]]:
    """Reads a split of a dataset whose examples have a list of words and a list of tags.

    Args:
      name: of the dataset, with its configuration: `wikiann/en`.
      folder: where TensorFlow Datasets keeps its data; None: `~/tensorflow_datasets`.
      split: `train`, `dev` or `test`.
      form: its columns are names of features; by default `tokens`, and `tags` or `ner`.

    Returns:
      where the data are, for messages, and the sentences; their lines are numbers of examples.

    Raises:
      InputError: for a dataset, split or feature that is missing.
    """
    builder = prepared_builder(name, folder)
    names = [known for known in SPLITS[split] if known in builder.info.splits]
    if not names:
        raise NotFound(
            f"{name} has no {split} split. Received: {preview(sorted(builder.info.splits))}"
        )
    words = _feature(builder, (form.word_column or "tokens",), name, "word_column")
    tags = _feature(builder, (form.tag_column,) if form.tag_column else TAGS, name, "tag_column")
    texts = _names(builder.info.features[tags].feature, name, tags)
    sentences = [
        Sentence(
            tuple(_text(word) for word in row[words]),
            tuple(_text(tag) if texts is None else texts[tag] for tag in row[tags]),
            number,
            step=0,
        )
        for number, row in enumerate(builder_rows(builder, names[0]), 1)
    ]
    return os.path.join(str(builder.data_path), names[0]), sentences


def _feature(builder: Any, names: tuple[str, ...], dataset: str, setting: str) -> str:
    """Returns the first of these names that is a feature with a list of values."""
    features = builder.info.features
    for name in names:
        if name in features and hasattr(features[name], "feature"):
            return name
    raise NotFound(
        f"{dataset} has no list of values {' or '.join(map(repr, names))} ({setting}). Its "
        f"features: {preview(sorted(features))}",
        setting,
    )


def _names(feature: Any, dataset: str, tags: str) -> list[str] | None:
    """Returns the tags of class labels; None for texts."""
    names: list[str] | None = getattr(feature, "names", None)
    if names is None and feature.np_dtype.kind in "iu":
        raise NotFound(f"{dataset}: {tags!r} holds numbers, and the dataset has no names for them.")
    return names


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
