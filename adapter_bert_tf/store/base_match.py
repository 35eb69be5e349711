"""Whether a base is the one that an adapter was trained on."""

from collections.abc import Mapping
from typing import Any

from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import checks, contents

WHOLE = ("full", "multitask_full", "pals")  # Of these all weights are in the file.


def check_base(config: Mapping[str, Any], received: Mapping[str, Any]) -> None:
    """An adapter's base must be the one at hand.

    Args:
      config: of the adapter.
      received: fingerprint of a base.

    Raises:
      InputError: when it is another one, or its weights were random and are gone. The LayerNorms
        count where the adapter brings none of its own; of a directory of an earlier version, which
        does not say which they were, a warning says so.
    """
    expected = config["base"]
    if expected["weights_sha256"] is None and config["method"] not in WHOLE:
        raise InputError(
            "The adapter was trained on a base of random weights, which is not there "
            "any more. Train it again on a base with weights (checkpoint=PATH).",
            "checkpoint=PATH",
        )
    different = [
        f"{key}: adapter {preview(expected.get(key))}, base {preview(received.get(key))}"
        for key in received
        if expected.get(key) != received[key] and key != checks.NORMS
    ]
    if not different and not contents.brings_norms(config):
        different = _other_norms(expected.get(checks.NORMS), received.get(checks.NORMS))
    if different:
        raise InputError(
            "The adapter was trained on another base. "
            + "; ".join(different)
            + f". Use the base it was trained on (base=BASE){_named(config)}.",
            "base=BASE",
        )


def _named(config: Mapping[str, Any]) -> str:
    """What the adapter calls its base, if anything."""
    origin = config.get("base_model")
    if not origin:
        return ""
    revision = f" of revision {preview(origin['revision'])}" if origin["revision"] else ""
    return f": {preview(origin['name'])}{revision}"


def _other_norms(expected: str | None, received: str | None) -> list[str]:
    """What differs of the LayerNorms, if anything."""
    if received is None or expected == received:
        return []
    if expected is None:
        logging.warning(
            "The adapter brings no LayerNorms of its own and does not say with which it was "
            "trained, as it was saved by an earlier version: they cannot be compared with the "
            "base's."
        )
        return []
    return [f"LayerNorms: adapter {expected!r}, base {received!r}"]
