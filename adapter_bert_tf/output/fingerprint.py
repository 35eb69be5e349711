"""What makes a run the run that it is, as one digest, and where its adapter may go."""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.config import table
from adapter_bert_tf.config.row import Value
from adapter_bert_tf.store.checks import NORMS

# Of a base's fingerprint, in the digest of a run.
BASE = ("weights_sha256", "vocabulary_sha256", "lower_case", "hidden_size", "num_layers")
SEEN_IN_CONTENT = ("adapter",)  # A flag that may be a path to what the content has.


def decisive(values: Mapping[str, Value], without: Collection[str] = ()) -> dict[str, Value]:
    """The flags, of a dict of all, that make a run and its results what they are."""
    free = (*table.FREE, *without)
    return {
        name: value.rstrip("/") or value if isinstance(value, str) else value
        for name, value in values.items()
        if name not in free
    }


def digest(values: Any) -> str:
    """SHA-256 of values that JSON can hold."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def run_digest(
    flags: Mapping[str, Value], defaults: Mapping[str, Value], read: Mapping[str, Any]
) -> str:
    """A digest of what decides a training: the flags but for paths, and what it reads.

    Flags that have their default do not count, so that a new one changes no digest.

    Args:
      flags: of the run, all of them.
      defaults: of the flags.
      read: what the training reads, with `base`, a fingerprint.
    """
    chosen = decisive(flags, (*table.ONLY_RESULTS, *table.PATHS, *SEEN_IN_CONTENT))
    ours = {n: v for n, v in chosen.items() if v is not None and v != defaults.get(n)}
    base = {name: read["base"].get(name) for name in BASE}
    return digest([ours, {**read, "base": base}])


def agrees(recorded: Any, value: Any) -> bool:
    """Whether a record says what a value is; a base's digest that it misses is younger than it."""
    if isinstance(recorded, dict) and isinstance(value, dict):
        value = {n: v for n, v in value.items() if n in recorded or n != NORMS}
    return bool(recorded == value)


def is_own_place(output_dir: str, adapter_dir: str) -> bool:
    """Whether an adapter goes where it goes by default, which `--overwrite` clears."""
    return bool(storage.real(adapter_dir) == storage.real(os.path.join(output_dir, "adapter")))


def not_replaced(output_dir: str, adapter_dir: str) -> str:
    """The message for an adapter that a run will not replace."""
    if is_own_place(output_dir, adapter_dir):
        return (
            f"{adapter_dir} already holds an adapter of another run. Choose another --output_dir, "
            "or replace it with --overwrite."
        )
    return (
        f"{adapter_dir} already holds an adapter of another run, which is not replaced. Choose "
        "another --adapter_dir, or remove what is there. To start training from that adapter use "
        f"--init_from={adapter_dir}."
    )
