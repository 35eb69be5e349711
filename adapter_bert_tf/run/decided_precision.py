"""The precision of a run, in place of `--precision=auto`."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.saved_settings import is_decided, with_earlier_defaults
from adapter_bert_tf.training.device.devices import hide_unsupported_cards
from adapter_bert_tf.training.device.precision import (
    AUTO,
    fastest_precision,
    gpu_capabilities,
)
from adapter_bert_tf.training.device.visibility import Capability


def with_decided_precision(config: RunConfig, cache: RunCache) -> RunConfig:
    """Returns the configuration of a run with the precision that it computes in.

    `auto` is what is fast on this machine's GPUs, for a run in the output folder what it began
    with, so that it can be resumed on another machine. Also takes over its other settings whose
    defaults have changed. Prints a line unless the precision is given, or float32 without a GPU.
    """
    is_given = is_decided(config, "precision")
    asked, config = config.device.precision, with_earlier_defaults(config)
    if is_given:
        return config
    hide_unsupported_cards()
    gpus = [] if config.device.strategy == "tpu" else gpu_capabilities()
    fastest, begun = fastest_precision(gpus), config.device.precision
    if asked == AUTO and begun not in (AUTO, fastest):
        cache.print_once(
            f"Precision: {begun}, in which this run started. A new run would use {fastest} here."
        )
    elif gpus:
        cache.print_once(f"Precision: {fastest} ({_cards(gpus)}).")
    return config if begun != AUTO else config.with_defaults(precision=fastest)


def _cards(gpus: list[Capability | None]) -> str:
    names = dict.fromkeys(".".join(map(str, gpu)) if gpu else "unknown" for gpu in gpus)
    return f"GPU, compute capability {', '.join(names)}"
