"""Which flags and which content make a run another run."""

from collections.abc import Collection, Mapping
from typing import Any

from adapter_bert_tf.config import table
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Value
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.output.records import digest
from adapter_bert_tf.output.run_dir import Fingerprint
from adapter_bert_tf.store.checks import NORMS
from adapter_bert_tf.tasks import role

# Of a base's fingerprint, in the digest of a run.
BASE = ("weights_sha256", "vocabulary_sha256", "lower_case", "hidden_size", "num_layers")
SEEN_IN_CONTENT = ("adapter",)  # A flag that may be a path to what the content has.
INITIAL = ("init_from", "members")  # In the content of a training that begins from adapters.


def decisive(values: Mapping[str, Value], without: Collection[str] = ()) -> dict[str, Value]:
    """The flags, from a dict of all, that make a run and its results what they are."""
    free = (*table.FREE, *without)
    return {
        name: value.rstrip("/") or value if isinstance(value, str) else value
        for name, value in values.items()
        if name not in free
    }


def fingerprint_of(flags: RunFlags, content: Mapping[str, Any] | None = None) -> Fingerprint:
    """The fingerprint of a run.

    Args:
      flags: of the run, all of them.
      content: what the run reads, as `run.json` records it; None before it is known.
    """
    content = content or {}
    read = _read_in_training(content)
    defaults = flags.completed(table.EARLIER)
    every = decisive(flags.values)
    training = decisive(flags.values, table.ONLY_RESULTS)
    actions = table.with_role(Role.APPLY, Role.EXPORT)
    return Fingerprint(
        run_id=run_digest(flags.values, defaults, read) if content else "",
        training=training,
        results={name: value for name, value in every.items() if name not in training},
        defaults=defaults,
        actions=tuple(name for name in actions if getattr(flags, name)),
        content=content,
        compared=("data_sha256", "base", "adapter", *INITIAL),
        read=read,
        scored=_chosen_by(flags, content),
        newer=(NORMS,),
    )


def run_digest(
    flags: Mapping[str, Value], defaults: Mapping[str, Value], read: Mapping[str, Any]
) -> str:
    """A digest of what decides a training: the flags without paths, and what it reads.

    Flags with their default do not count, so that a new flag changes no digest.

    Args:
      flags: of the run, all of them.
      defaults: of the flags.
      read: what the training reads, with `base`, a fingerprint.
    """
    chosen = decisive(flags, (*table.ONLY_RESULTS, *table.PATHS, *SEEN_IN_CONTENT))
    ours = {n: v for n, v in chosen.items() if v is not None and v != defaults.get(n)}
    base = {name: read["base"].get(name) for name in BASE}
    return digest([ours, {**read, "base": base}])


def _read_in_training(content: Mapping[str, Any]) -> dict[str, Any]:
    if not content:
        return {}
    read = {
        "training data": content["data_sha256"]["train"],
        "base": content["base"],
        "adapter": content["adapter"],
    }
    return read | {name: content[name] for name in INITIAL if name in content}


def _chosen_by(flags: RunFlags, content: Mapping[str, Any]) -> dict[str, Any]:
    """What decides which weights are kept; scores of other examples cannot be compared."""
    if not content or not (flags.values.get("keep") == "best" or flags.values.get("patience")):
        return {}
    digests = content["data_sha256"]
    return {"development data": {n: v for n, v in digests.items() if role(n) == "dev"}}
