"""Copies of the members in the adapter directory of a fusion."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.file_names import CONFIG, MEMBERS
from adapter_bert_tf.store.files import read_adapter
from adapter_bert_tf.store.members import Member, make_fusion_config
from adapter_bert_tf.store.multitask import require_one_task


def load_member(folder: str, name: str | None = None) -> Member:
    """Reads an adapter directory as a `Member`.

    Args:
      folder: path of an adapter.
      name: name in the fusion; None for the adapter's own.

    Raises:
      InputError: as `load_adapter`.
    """
    if not storage.exists(os.path.join(folder, CONFIG)):
        raise InputError(
            f"No adapter in {folder!r}: {CONFIG} is missing. Give the folder of an adapter."
        )
    config, weights, content = read_adapter(folder)
    require_one_task(config, folder)
    if contents.borrows(config):
        raise InputError(
            f"{folder!r} is a fusion, which cannot be a member of a fusion. Name its members."
        )
    return Member(name or contents.name_of(config), config, content, weights)


def read_members(folder: str, config: Mapping[str, Any]) -> tuple[Member, ...]:
    """Reads the members of a fusion; returns an empty tuple for other adapters.

    Raises:
      InputError: when a member is missing, damaged or different; the message names it.
    """
    adapter = contents.adapter_of(config)
    if not isinstance(adapter, FusionConfig):
        return ()
    digests = config["members"]
    _check_member_folders(os.path.join(folder, MEMBERS), digests)
    members = tuple(
        _read_member(os.path.join(folder, MEMBERS, digest[:16]), name, digest)
        for name, digest in zip(adapter.members, digests, strict=True)
    )
    members_config = make_fusion_config(members, adapter.cooling_steps)
    if members_config != adapter:
        raise InputError(
            f"The members in {os.path.join(folder, MEMBERS)!r} do not match {CONFIG}: "
            f"{preview(members_config)} in the folder, {preview(adapter)} in {CONFIG}."
        )
    check_base(members[0].config, config["base"])
    return members


def _read_member(folder: str, name: str, digest: str) -> Member:
    try:
        member = load_member(folder, name)
    except InputError as error:
        raise InputError(
            f"The member {preview(name)} of a fusion is missing or damaged. Put a copy of it in "
            f"{folder!r}. {error}"
        ) from error
    if member.config["sha256"] != digest:
        raise InputError(
            f"The member {preview(name)} of a fusion, in {folder!r}, has another digest than the "
            "one the fusion was trained with. Put a copy of the original member there."
        )
    return member


def _check_member_folders(parent: str, digests: Sequence[str]) -> None:
    is_folder = not storage.is_link(parent) and storage.isdir(parent)  # A link may lead to itself.
    names = [name.rstrip("/") for name in storage.listdir(parent)] if is_folder else []
    paths = [parent, *(os.path.join(parent, name) for name in names)]
    links = [path for path in paths if storage.is_link(path)]
    if links:
        raise InputError(
            f"{preview(links[0])} is a link, and no file outside the fusion's directory is read. "
            "Replace it by a copy of its target."
        )
    foreign = sorted(set(names) - {digest[:16] for digest in digests})
    if foreign:
        raise InputError(
            f"{parent!r} has {preview(foreign)}, which is not a member of the fusion. Move it away."
        )
