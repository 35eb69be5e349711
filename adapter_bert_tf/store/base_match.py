"""Check that a base is the one that an adapter was trained on."""

import os
from collections.abc import Mapping
from typing import Any

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.base.tokenizer_settings import TOKENIZER
from adapter_bert_tf.errors import Mismatch, Unsupported
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.checks import NORMS
from adapter_bert_tf.store.file_names import CONFIG
from adapter_bert_tf.store.files import find_adapter, read_config

FULL_METHODS = ("full", "multitask_full", "pals")  # Their files hold all weights.


def check_base(config: Mapping[str, Any], received: Mapping[str, Any]) -> None:
    """Raises `InputError` unless a fingerprint is that of the base in an adapter's config.

    Bases with random weights match no adapter, because they are not stored. LayerNorms are compared
    if the adapter has none of its own. Directories of earlier versions do not record them, nor
    settings of the tokenizer, which gives a warning.
    """
    expected = config["base"]
    if expected["weights_sha256"] is None and config["method"] not in FULL_METHODS:
        raise Unsupported(
            "The adapter was trained on a base of random weights, which are not stored. "
            "Train it again on a base with weights (checkpoint=PATH).",
            "checkpoint=PATH",
        )
    differences = [
        f"{key}: adapter {preview(expected.get(key))}, base {preview(received.get(key))}"
        for key in dict.fromkeys((*received, TOKENIZER))
        if expected.get(key) != received.get(key)
        and key != NORMS
        # Earlier versions ignored the settings of the tokenizer, and recorded none.
        and not (key == TOKENIZER and key not in expected)
    ]
    norms, received_norms = expected.get(NORMS), received.get(NORMS)
    if (
        not differences
        and received_norms not in (None, norms)
        and not contents.brings_norms(config)
    ):
        if norms is None:
            logging.warning(
                "The adapter was saved by an earlier version, which did not record the LayerNorms "
                "of its base: they cannot be compared with this base's."
            )
        else:
            differences = [f"LayerNorms: adapter {norms!r}, base {received_norms!r}"]
    if TOKENIZER in received and TOKENIZER not in expected and not differences:
        logging.warning(
            "The adapter was trained without these tokenizer settings of the base, which earlier "
            "versions ignored: %s. Its predictions may change: train it again.",
            preview(received[TOKENIZER]),
        )
    if differences:
        raise Mismatch(
            f"The adapter was trained on another base. {'; '.join(differences)}. Use the base it "
            f"was trained on (base=BASE){_base_name(config)}.",
            "base=BASE",
        )


def _base_name(config: Mapping[str, Any]) -> str:
    """Formats the recorded name of the base, if there is one."""
    origin = config.get("base_model")
    if not origin:
        return ""
    revision = f" of revision {preview(origin['revision'])}" if origin["revision"] else ""
    return f": {preview(origin['name'])}{revision}"


def base_source(config: Mapping[str, Any]) -> str | None:
    """The base that an adapter names, for `load_base`; None for the installed one.

    A folder has another path on another machine, so it is not used.
    """
    origin = config.get("base_model")
    if not origin or origin["kind"] == "folder":
        return None
    of_hub = origin["kind"] == "hub" and origin["revision"]
    return f"{origin['name']}@{origin['revision']}" if of_hub else str(origin["name"])


def base_of(folder: str | os.PathLike[str]) -> str | None:
    """The base that the adapter in a folder names; None without an adapter."""
    found = find_adapter(storage.path_of(folder))
    # A missing adapter is refused where it is loaded.
    return base_source(read_config(os.path.join(found, CONFIG))) if found else None
