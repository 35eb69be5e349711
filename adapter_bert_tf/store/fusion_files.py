"""The copies of its members that the adapter directory of a fusion holds."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.files import read
from adapter_bert_tf.store.members import Member, fusion_of
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.store.place import CONFIG, MEMBERS


def load_member(folder: str, name: str | None = None) -> Member:
    """Reads an adapter directory, to keep a copy of it.

    Args:
      folder: of an adapter.
      name: in the fusion; None for the adapter's own.

    Raises:
      InputError: as `load_adapter`.
    """
    if not storage.exists(os.path.join(folder, CONFIG)):
        raise InputError(
            f"No adapter in {folder!r}: {CONFIG} is not there. Name the folder of one."
        )
    config, weights, content = read(folder)
    require_one_task(config, folder)
    if contents.borrows(config):
        raise InputError(
            f"{folder!r} is a fusion itself, and no member of another. Name its members instead."
        )
    return Member(name or contents.name_of(config), config, content, weights)


def read_members(folder: str, config: Mapping[str, Any]) -> tuple[Member, ...]:
    """The copies of a fusion's members; none of any other adapter.

    Raises:
      InputError: which names the member that is missing, damaged or another one.
    """
    adapter = contents.adapter_of(config)
    if not isinstance(adapter, FusionConfig):
        return ()
    digests = config["members"]
    _check_folders(os.path.join(folder, MEMBERS), digests)
    members = tuple(
        _read_member(os.path.join(folder, MEMBERS, digest[:16]), name, digest)
        for name, digest in zip(adapter.members, digests, strict=True)
    )
    found = fusion_of(members, adapter.cooling_steps)
    if found != adapter:
        raise InputError(
            f"The members in {os.path.join(folder, MEMBERS)!r} are not those of the fusion: "
            f"{preview(found)} there, {preview(adapter)} in its {CONFIG}."
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
            f"The member {preview(name)} of a fusion, in {folder!r}, is not the one that it was "
            "made with: another digest. Put a copy of that one there."
        )
    return member


def _check_folders(place: str, digests: Sequence[str]) -> None:
    is_folder = not storage.is_link(place) and storage.isdir(place)  # A link may lead to itself.
    names = [name.rstrip("/") for name in storage.listdir(place)] if is_folder else []
    paths = [place, *(os.path.join(place, name) for name in names)]
    linked = [path for path in paths if storage.is_link(path)]
    if linked:
        raise InputError(
            f"{preview(linked[0])} is a link, and nothing outside of a fusion's directory is read. "
            "Copy what it leads to there instead."
        )
    foreign = sorted(set(names) - {digest[:16] for digest in digests})
    if foreign:
        raise InputError(
            f"{place!r} holds {preview(foreign)}, which is no member of the fusion. Move it away."
        )
