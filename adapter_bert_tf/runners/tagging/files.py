"""The files of tagged words that the settings name, and how they are read; without TensorFlow."""

import os
import re
from collections.abc import Collection

from adapter_bert_tf import storage
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.tagging.sentences import EXTENSIONS, extension_of, read_sentences
from adapter_bert_tf.data.tagging.tag_format import TagFormat
from adapter_bert_tf.errors import InputError, Missing, NotFound, error_context
from adapter_bert_tf.predict.tagged_files import format_of
from adapter_bert_tf.retry import is_remote
from adapter_bert_tf.runners.multitask.task_configs import configs_of
from adapter_bert_tf.sanitize import preview

# Names of the splits in names of files: `dev.conll`, `valid.txt`, `eng.testa`, `NER-de-train.tsv`.
NAMES = {
    "train": ("train",),
    "dev": ("dev", "valid", "validation", "testa"),
    "test": ("test", "testb"),
}


def tag_format(config: RunConfig) -> TagFormat:
    """Returns how the files are read. Raises `InputError`."""
    tagging, encoding = config.tagging, config.table.encoding
    return format_of(
        tagging.word_column, tagging.separator, tagging.comments, encoding, tagging.tag_column
    )


def needed_splits(config: RunConfig) -> list[str]:
    """Returns the splits that the actions read."""
    actions = config.actions
    needed = {"train": actions.do_train, "dev": actions.do_eval, "test": actions.do_predict}
    return [split for split, is_needed in needed.items() if is_needed]


def file_of(config: RunConfig, split: str) -> str:
    """Returns the path of a split's file. Raises `InputError` if it is missing."""
    named = config.values[f"{split}_file"]
    if named:
        return str(named)
    folder, flag = config.data.data_dir, f"--{split}_file"
    if not folder:
        raise Missing(f"{flag} is missing, or --data_dir, the folder with {_likely(split)}.")
    found = files_in(folder, split)
    if len(found) != 1:
        several = f"{preview(sorted(found))} may be the {split} file" if found else ""
        missing = f"there is no {split} file, such as {_likely(split)}"
        raise NotFound(f"{folder}: {several or missing}. Name it with {flag}.")
    return os.path.join(folder, found[0])


def files_in(folder: str, split: str) -> list[str]:
    """Returns the names of the files of tagged words in a folder that may be those of a split."""
    names = [name for name in _listed(folder) if _is_readable(name)]
    stems = [name for name in names if _stem(name) in NAMES[split]]
    return stems or [name for name in names if set(_parts(name)) & set(NAMES[split])]


def is_dataset(config: RunConfig) -> bool:
    """Whether the data come from TensorFlow Datasets."""
    return config.data.data_source == "tfds"


def dataset_of(config: RunConfig) -> str:
    """Returns the name of the dataset. Raises `InputError` if it is missing."""
    if not config.tagging.tfds_name:
        raise Missing("--data_source=tfds needs --tfds_name: conll2003, or wikiann/en.")
    return config.tagging.tfds_name


def check_files(config: RunConfig) -> None:
    """Requires the local files of a run and their first sentences, without TensorFlow.

    The others are checked when they are read, and the runs of a sweep one by one. Raises
    `InputError`.
    """
    if config.sweeps.sweep:  # Its runs may read other columns.
        return
    if config.device.strategy == "tpu":  # `paths.check` explains that its paths must be remote.
        return
    if not config.data.task_name:
        _check(config)
        return
    for name, own in configs_of(config).items():
        with error_context(f"The task {name!r}"):
            _check(own)


def _check(config: RunConfig) -> None:
    if is_dataset(config):
        dataset_of(config)
        return
    form = tag_format(config)
    for split in needed_splits(config):
        if not is_remote(str(config.values[f"{split}_file"] or config.data.data_dir or "")):
            path = file_of(config, split)
            next(read_sentences(path, form, tagged=split != "test"))


def _listed(folder: str) -> Collection[str]:
    if not storage.isdir(folder):
        raise NotFound(f"--data_dir={folder} is not a folder.")
    return storage.listdir(folder)


def _is_readable(name: str) -> bool:
    try:
        extension_of(name)
    except InputError:
        return False
    return True


def _stem(name: str) -> str:
    return name.split(".")[0].lower()


def _parts(name: str) -> list[str]:
    return re.split(r"[^a-z0-9]+", name.lower())


def _likely(split: str) -> str:
    return f"{split}{EXTENSIONS[0]} or {split}.jsonl"
