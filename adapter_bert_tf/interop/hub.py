"""Uploads adapter directories to the Hugging Face Hub and downloads them."""

import os
import re
import shutil
import tempfile
from typing import Any

from absl import logging

from adapter_bert_tf.base.hub import HUB_NAME, first_line, hub_errors, import_library
from adapter_bert_tf.errors import InputError, Unavailable
from adapter_bert_tf.retry import is_remote
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.store.directory import check_task_directories, load_adapter
from adapter_bert_tf.store.file_names import CARD, CONFIG, INSIDE, WEIGHTS
from adapter_bert_tf.store.files import adapter_at

PATTERNS = (CONFIG, WEIGHTS, CARD, *(f"{inside}/*" for inside in INSIDE))
COMMIT = re.compile(r"[0-9a-f]{40}")
TOKEN_ADVICE = "Set a token with write access: hf auth login, or HF_TOKEN."
LIBRARY_PURPOSE = "push and pull use the Hugging Face Hub."


def push(folder: str, name: str, private: bool = False) -> str:
    """Uploads a local adapter, or that of a run, in one commit; returns the URL of the commit.

    The commit removes files of an earlier upload that are not part of this adapter. A repository
    OWNER/NAME that does not exist is created. `hf auth login` or HF_TOKEN sets the token for write
    access. Raises `InputError` when the adapter is damaged, or the Hub refuses.
    """
    if is_remote(folder):
        raise InputError(f"Only a local folder can be pushed. Copy it first. Received: {folder!r}")
    repo = _parse_name(name)["repo"]
    if name != repo:
        raise InputError(f"A push makes a new revision. Leave out {preview(name[len(repo) :])}.")
    folder = adapter_at(folder)
    check_task_directories(folder, load_adapter(folder))
    hub = import_library("huggingface_hub", LIBRARY_PURPOSE)
    try:
        api = hub.HfApi()
        api.create_repo(repo, private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo,
            folder_path=folder,
            allow_patterns=list(PATTERNS),
            delete_patterns=list(PATTERNS),
            commit_message="Adapter of adapter_bert_tf",
        )
    except hub_errors() as error:
        has_response = getattr(error, "response", None) is not None
        advice = TOKEN_ADVICE if has_response else "Check the network."
        raise Unavailable(f"The Hub refused {repo!r}: {first_line(error)} {advice}") from error
    return str(commit.commit_url)


def pull(name: str, output: str) -> str:
    """Downloads OWNER/NAME or OWNER/NAME@REVISION into a new folder; returns the revision.

    The adapter is checked before it appears as `output`. Without a connection to the Hub it uses an
    earlier download, with a warning. Raises `InputError` when the Hub refuses, or the repository is
    not a valid adapter.
    """
    if is_remote(output):
        raise InputError(f"The output must be a local folder. Received: {output!r}")
    require_free(output)
    repository = _parse_name(name)
    hub = import_library("huggingface_hub", LIBRARY_PURPOSE)
    try:
        source = _download(hub, **repository)
    except hub_errors() as error:
        raise Unavailable(f"Cannot download {name!r}: {first_line(error)}") from error
    parent = os.path.dirname(os.path.abspath(output))
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".pulled-") as temporary:
        copy = os.path.join(temporary, "adapter")
        shutil.copytree(source, copy)  # Replaces the links of the cache by files.
        try:
            check_task_directories(copy, load_adapter(copy))
        except InputError as error:
            raise type(error)(str(error).replace(copy, name), *error.arguments) from error
        os.rename(copy, output)
    return os.path.basename(source)


def _download(hub: Any, repo: str, revision: str | None) -> str:
    """Downloads a snapshot; warns if it is only cached, which the library does not report."""
    problem = ""
    try:
        if not COMMIT.fullmatch(revision or ""):
            hub.HfApi().model_info(repo, revision=revision)
    except hub_errors() as error:
        problem = first_line(error)
    folder = str(hub.snapshot_download(repo, revision=revision, allow_patterns=list(PATTERNS)))
    if problem:
        logging.warning(f"{repo!r} is an earlier download and may be outdated: {problem}")
    return folder


def _parse_name(name: str) -> dict[str, Any]:
    match = HUB_NAME.fullmatch(name)
    if not match or "/" not in match["repo"]:
        raise InputError(f"A repository must be OWNER/NAME. Received: {preview(name)}")
    return match.groupdict()
