"""Advice for a run whose memory is not enough."""

import contextlib
import functools
from typing import Literal

from adapter_bert_tf.errors import memory_context
from adapter_bert_tf.run.plan import Plan

Phase = Literal["model", "train", "evaluate", "predict", "export"]

# By phase: what it computes, and the setting of its batch.
_FLAGS: dict[Phase, tuple[str, str]] = {
    "train": ("a training step", "train_batch_size"),
    "evaluate": ("an evaluation", "eval_batch_size"),
    "predict": ("a prediction", "predict_batch_size"),
}
_SAME_RUN = "The same command then continues from the last checkpoint."


def explain_memory(plan: Plan, phase: Phase) -> contextlib.AbstractContextManager[None]:
    """Returns a context that raises `OutOfMemory` with what would need less memory."""
    return memory_context(functools.partial(_advice, plan, phase))


def _advice(plan: Plan, phase: Phase) -> str:
    if phase not in _FLAGS:
        what = "load the model" if phase == "model" else "export"
        return (
            f"The memory is not enough to {what}. Close other programs that use the device. "
            f"{_SAME_RUN}"
        )
    what, flag = _FLAGS[phase]
    size, parts = _batch(plan, phase)
    replicas = plan.strategy.num_replicas_in_sync
    length = plan.batches.max_seq_length
    smaller = smaller_batch(size, replicas)
    sentences = [
        f"The memory is not enough for {what} with --{flag}={size}, --max_seq_length={length} and "
        f"--precision={plan.precision}."
    ]
    if phase == "train":
        if smaller:
            steps = size * parts // smaller
            sentences.append(
                f"Give --{flag}={smaller} --gradient_accumulation_steps={steps}: as many examples "
                "in a step, in less memory."
            )
        half = f"--max_seq_length={length // 2}"
        less = f"{half} or a --precision of fewer bits" if plan.precision == "float32" else half
        sentences.append(
            f"{less} saves memory{', too' if smaller else ''}. Each of these is another run, which "
            "needs another --output_dir or --overwrite. The checkpoints stay: the same command "
            "continues where more memory is free."
        )
    else:
        less = f"--{flag}={smaller}" if smaller else f"--max_seq_length={length // 2}"
        sentences.append(f"Give {less}. {_SAME_RUN if smaller else ''}".rstrip())
    return " ".join(sentences)


def _batch(plan: Plan, phase: Phase) -> tuple[int, int]:
    """Returns the examples that are computed at a time, and how often in a step."""
    if phase == "train":
        parts = plan.training.microbatches
        return plan.batches.train // parts, parts
    return (plan.batches.evaluate if phase == "evaluate" else plan.batches.predict), 1


def smaller_batch(size: int, replicas: int) -> int | None:
    """Returns the largest part of a batch, at most half of it, that the replicas can divide."""
    parts = [part for part in range(replicas, size // 2 + 1, replicas) if size % part == 0]
    return parts[-1] if parts else None
