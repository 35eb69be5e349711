"""Adapter directories on the Hugging Face Hub: one repository each."""

import os
import re
import shutil
import tempfile
from typing import Any

from absl import logging

from adapter_bert_tf.base.hub import HUB_NAME, first_line, hub_errors, library
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.retry import is_remote
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.directory import check_tasks, load_adapter
from adapter_bert_tf.store.folders import CONFIG, INSIDE, require_free
from adapter_bert_tf.store.place import CARD, WEIGHTS

PATTERNS = (CONFIG, WEIGHTS, CARD, *(f"{inside}/*" for inside in INSIDE))
COMMIT = re.compile(r"[0-9a-f]{40}")
NO_TOKEN = "It asks for a token with the right to write there: hf auth login, or HF_TOKEN."
WHY = "The Hugging Face Hub is asked by its own library."


def push(folder: str, name: str, private: bool = False) -> str:
    """Uploads an adapter directory, as one commit; makes the repository if there is none.

    What was pushed there before and is not part of this adapter is removed by the same commit.

    Args:
      folder: local; all of it is read and checked before.
      name: OWNER/NAME. Who may write there is decided by the token of `hf auth login`, or HF_TOKEN.
      private: of a repository that is made.

    Returns:
      the address of the commit.

    Raises:
      InputError: when the adapter is damaged, or the Hub refuses.
    """
    if is_remote(folder):
        raise InputError(f"Only a local folder is pushed: copy it first. Received: {folder!r}")
    repo = _repository(name)["repo"]
    if name != repo:
        raise InputError(f"What is pushed becomes the newest revision. Received: {preview(name)}")
    check_tasks(folder, load_adapter(folder))
    hub = library("huggingface_hub", WHY)
    try:
        api = hub.HfApi()
        api.create_repo(repo, private=private, exist_ok=True)
        done = api.upload_folder(
            repo_id=repo,
            folder_path=folder,
            allow_patterns=list(PATTERNS),
            delete_patterns=list(PATTERNS),
            commit_message="Adapter of adapter_bert_tf",
        )
    except hub_errors() as error:
        answered = getattr(error, "response", None) is not None
        advice = NO_TOKEN if answered else "Is there a network?"
        raise InputError(f"The Hub did not take {repo!r}: {first_line(error)} {advice}") from error
    return str(done.commit_url)


def pull(name: str, output: str) -> str:
    """Downloads an adapter directory; it is checked before it is at its place.

    Where the Hub cannot be asked, what was downloaded before is taken, and that is said.

    Args:
      name: OWNER/NAME, or OWNER/NAME@REVISION.
      output: the folder to make; nothing may be there.

    Returns:
      the revision.

    Raises:
      InputError: when the Hub does not give it, or it is no adapter, or a damaged one.
    """
    if is_remote(output):
        raise InputError(f"Only a local folder is written: copy it then. Received: {output!r}")
    require_free(output)
    found = _repository(name)
    hub = library("huggingface_hub", WHY)
    try:
        source = _downloaded(hub, **found)
    except hub_errors() as error:
        raise InputError(f"The Hub did not give {name!r}: {first_line(error)}") from error
    above = os.path.dirname(os.path.abspath(output))
    os.makedirs(above, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=above, prefix=".pulled-") as temporary:
        whole = os.path.join(temporary, "adapter")
        shutil.copytree(source, whole)  # The cache has links, and an adapter has none.
        try:
            check_tasks(whole, load_adapter(whole))
        except InputError as error:
            raise InputError(str(error).replace(whole, name), *error.arguments) from error
        os.rename(whole, output)
    return os.path.basename(source)


def _downloaded(hub: Any, repo: str, revision: str | None) -> str:
    """The folder of a snapshot; the library is silent about one that it finds in its cache only."""
    why = "" if COMMIT.fullmatch(revision or "") else _unanswered(hub, repo, revision)
    folder = str(hub.snapshot_download(repo, revision=revision, allow_patterns=list(PATTERNS)))
    if why:
        logging.warning("%r is what was downloaded before; the Hub may have a newer: %s", repo, why)
    return folder


def _unanswered(hub: Any, repo: str, revision: str | None) -> str:
    """Why the Hub does not say what a revision is; nothing if it does."""
    try:
        hub.HfApi().model_info(repo, revision=revision)
    except hub_errors() as error:
        return first_line(error)
    return ""


def _repository(name: str) -> dict[str, Any]:
    found = HUB_NAME.fullmatch(name)
    if not found or "/" not in found["repo"]:
        raise InputError(f"A repository is OWNER/NAME. Received: {preview(name)}")
    return found.groupdict()
