"""`--fuse`: the adapters that a fusion listens to."""

from collections.abc import Sequence

from adapter_bert_tf.base import Base
from adapter_bert_tf.config.checks import check_fusion
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.directory import parse_named_folders
from adapter_bert_tf.store.fusion_files import load_member
from adapter_bert_tf.store.members import Member


def load_members(flags: RunFlags, start: InitialAdapter | None) -> tuple[Member, ...]:
    """The members of a fusion that is to be trained; none of anything else.

    Args:
      flags: of the run.
      start: the adapter that it begins from; of a fusion its members are taken.

    Raises:
      InputError: when one is missing or damaged.
    """
    if not flags.do_train:
        return ()
    if start:
        return start.saved.members
    if flags.tuning != "fusion":
        return ()
    check_fusion(flags)
    members = []
    for name, folder in parse_named_folders(flags.fuse or ""):
        try:
            members.append(load_member(folder, name or None))
        except InputError as error:
            raise InputError(f"--fuse: {error}", *error.arguments) from error
    return tuple(members)


def check_members(members: Sequence[Member], base: Base) -> None:
    """The members must have been trained on the base at hand. Raises `InputError`."""
    for member in members:
        try:
            check_base(member.config, base.fingerprint())
        except InputError as error:
            raise InputError(
                f"--fuse: the member {preview(member.name)}: {error}", *error.arguments
            ) from error
