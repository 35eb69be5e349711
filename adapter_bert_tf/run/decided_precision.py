"""The precision of a run, in place of `--precision=auto`."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.saved_settings import is_decided, with_earlier_defaults
from adapter_bert_tf.training.device.devices import hide_unsupported_cards
from adapter_bert_tf.training.device.kernels import multiplies_bfloat16
from adapter_bert_tf.training.device.precision import (
    AUTO,
    fastest_precision,
    gpu_capabilities,
)
from adapter_bert_tf.training.device.visibility import Capability


def with_decided_precision(
    config: RunConfig, cache: RunCache, there: str | None = None
) -> RunConfig:
    """Returns the configuration of a run with the precision that it computes in.

    `auto` is what is fast on this machine's GPUs, or else its processor; for a run in the output
    folder what it began with, so that it can be resumed on another machine. Also takes over its
    other settings whose defaults have changed. Prints a line unless the precision is given, or
    float32 without a GPU.

    Args:
      config: of a run or a sweep.
      cache: of the command.
      there: what is fast on the machines that execute the runs, if this one does not.
    """
    is_given = is_decided(config, "precision")
    asked, config = config.device.precision, with_earlier_defaults(config)
    if is_given:
        return config
    fastest, gpus = (there, []) if there else fastest_here(config.device.strategy == "tpu")
    begun = config.device.precision
    if asked == AUTO and begun not in (AUTO, fastest):
        cache.print_once(
            f"Precision: {begun}, in which this run started. A new run would use {fastest} here."
        )
    elif there:
        cache.print_once(f"Precision: {there} (on the workers).")
    elif gpus or fastest != "float32":
        device = _cards(gpus) if gpus else "CPU with AMX; --precision=float32 is exact and slower"
        cache.print_once(f"Precision: {fastest} ({device}).")
    return config if begun != AUTO else config.with_defaults(precision=fastest)


def fastest_here(is_tpu: bool = False) -> tuple[str, list[Capability | None]]:
    """Returns the fastest precision of this machine, and the capabilities of its GPUs."""
    hide_unsupported_cards()
    gpus = [] if is_tpu else gpu_capabilities()
    return fastest_precision(gpus, not is_tpu and multiplies_bfloat16()), gpus


def _cards(gpus: list[Capability | None]) -> str:
    names = dict.fromkeys(".".join(map(str, gpu)) if gpu else "unknown" for gpu in gpus)
    return f"GPU, compute capability {', '.join(names)}"
