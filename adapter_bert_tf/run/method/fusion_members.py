"""`--fuse`: the members of a fusion."""

from collections.abc import Sequence

from adapter_bert_tf.base import Base
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import error_context
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.directory import parse_named_folders
from adapter_bert_tf.store.fusion_files import load_member
from adapter_bert_tf.store.members import Member


def load_members(config: RunConfig, initial: InitialAdapter | None) -> tuple[Member, ...]:
    """Loads the members of a fusion that is trained, or has them from the initial adapter.

    Raises `InputError` for a missing or damaged member.
    """
    if not config.actions.do_train:
        return ()
    if initial:
        return initial.saved.members
    if config.method.tuning != "fusion":
        return ()
    folders = parse_named_folders(config.training.fuse or "")
    with error_context("--fuse"):
        return tuple(load_member(folder, name or None) for name, folder in folders)


def check_members(members: Sequence[Member], base: Base) -> None:
    """Raises `InputError` for members that were trained on another base."""
    for member in members:
        with error_context(f"--fuse: the member {preview(member.name)}"):
            check_base(member.config, base.fingerprint())
