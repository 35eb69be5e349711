"""What a saved adapter says of its inputs: the defaults of a run that applies it."""

from typing import Any

from absl import logging

from adapter_bert_tf.command import table
from adapter_bert_tf.command.roles import Role
from adapter_bert_tf.command.run_flags import RunFlags
from adapter_bert_tf.store import SavedAdapter

# Settings of an adapter whose flags have another name.
RENAMED = {"null_allowed": "version_2_with_negative"}


def applied(flags: RunFlags, saved: SavedAdapter) -> RunFlags:
    """The flags, with the adapter's own settings where the user gave none; others are named.

    Args:
      flags: of a run that does not train.
      saved: the adapter that it applies.
    """
    theirs = {name: value for name, value in _settings(saved).items() if name in flags.values}
    other = [
        f"--{name}={flags.values[name]}, the adapter {value}"
        for name, value in theirs.items()
        if name in flags.given and flags.values[name] != value
    ]
    if other:
        logging.warning("Not as the adapter was trained: %s.", "; ".join(other))
    return flags.changed(**{n: value for n, value in theirs.items() if n not in flags.given})


def _settings(saved: SavedAdapter) -> dict[str, Any]:
    """Dict from flag to value."""
    config = saved.config
    settings = {RENAMED.get(name, name): value for name, value in config["inputs"].items()}
    settings |= config.get("table", {})
    names = table.with_role(Role.READING, Role.DECODING)
    return {name: value for name, value in settings.items() if name in names}
