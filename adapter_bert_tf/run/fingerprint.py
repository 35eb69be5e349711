"""The settings and the content that identify a run."""

from collections.abc import Collection, Mapping
from typing import Any

from adapter_bert_tf.config import settings
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Value
from adapter_bert_tf.output.records import digest
from adapter_bert_tf.output.run_dir import Fingerprint
from adapter_bert_tf.store.checks import NORMS
from adapter_bert_tf.tasks import role

# Of a base's fingerprint, in the digest of a run.
BASE = ("weights_sha256", "vocabulary_sha256", "lower_case", "hidden_size", "num_layers")
SEEN_IN_CONTENT = ("adapter",)  # A setting that may be a path to what the content has.
INITIAL = ("init_from", "members")  # In the content of a training that starts from adapters.


def decisive(values: Mapping[str, Value], without: Collection[str] = ()) -> dict[str, Value]:
    """Selects the settings that determine a run and its results."""
    free = (*settings.FREE, *without)
    return {
        name: value.rstrip("/") or value if isinstance(value, str) else value
        for name, value in values.items()
        if name not in free
    }


def fingerprint_of(config: RunConfig, content: Mapping[str, Any] | None = None) -> Fingerprint:
    """The fingerprint of a run.

    Args:
      config: of the run.
      content: digests of what the run reads, as in `run.json`; None before they are known.
    """
    content = content or {}
    read = _read_in_training(content)
    defaults = {**config.defaults, **settings.EARLIER}
    every = decisive(config.values)
    training = decisive(config.values, settings.ONLY_RESULTS)
    actions = settings.with_role(Role.APPLY, Role.EXPORT)
    return Fingerprint(
        run_id=run_digest(config.values, defaults, read) if content else "",
        training=training,
        results={name: value for name, value in every.items() if name not in training},
        defaults=defaults,
        actions=tuple(name for name in actions if config.value(name)),
        content=content,
        compared=("data_sha256", "base", "adapter", *INITIAL),
        read=read,
        scored=_chosen_by(config, content),
        newer=(NORMS,),
    )


def run_digest(
    values: Mapping[str, Value], defaults: Mapping[str, Value], read: Mapping[str, Any]
) -> str:
    """Digest of what determines a training: the settings without paths, and what it reads.

    Settings with their default do not count, so that a new setting changes no digest.

    Args:
      values: all settings of the run.
      defaults: of the settings.
      read: what the training reads, with `base`, a fingerprint.
    """
    determining = decisive(values, (*settings.ONLY_RESULTS, *settings.PATHS, *SEEN_IN_CONTENT))
    changed = {n: v for n, v in determining.items() if v is not None and v != defaults.get(n)}
    base = {name: read["base"].get(name) for name in BASE}
    return digest([changed, {**read, "base": base}])


def _read_in_training(content: Mapping[str, Any]) -> dict[str, Any]:
    if not content:
        return {}
    read = {
        "training data": content["data_sha256"].get("train"),
        "base": content["base"],
        "adapter": content["adapter"],
    }
    return read | {name: content[name] for name in INITIAL if name in content}


def _chosen_by(config: RunConfig, content: Mapping[str, Any]) -> dict[str, Any]:
    """Digests of the data that decide which weights are kept."""
    if not content or not (config.evaluation.keep == "best" or config.evaluation.patience):
        return {}
    digests = content["data_sha256"]
    return {"development data": {n: v for n, v in digests.items() if role(n) == "dev"}}
