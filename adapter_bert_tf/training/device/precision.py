"""Precision of computation: the dtypes of layers, what a card computes fast, and equal bytes."""

import contextlib
import os
from collections.abc import Iterator, Sequence

import tensorflow as tf
import tf_keras

from adapter_bert_tf.training.device.visibility import Capability

AUTO = "auto"
# By name: tf_keras' policy, and the dtype of products with the base's kernels.
PRECISIONS: dict[str, tuple[str, str | None]] = {
    "float32": ("float32", None),
    "bfloat16": ("mixed_bfloat16", None),
    "float16": ("mixed_float16", None),
    "bfloat16_base": ("float32", "bfloat16"),
}
# XLA chooses kernels by measuring them, unless this is set: two processes may choose differently.
DETERMINISTIC_XLA = "--xla_gpu_deterministic_ops=true"


@contextlib.contextmanager
def precision_scope(precision: str) -> Iterator[None]:
    """A context whose new layers compute in a precision, by a name in `PRECISIONS`."""
    before = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(PRECISIONS[precision][0])
    try:
        yield
    finally:
        tf_keras.mixed_precision.set_global_policy(before)


def gpu_capabilities() -> list[Capability | None]:
    """The compute capability of each GPU that TensorFlow sees, None where it is unknown.

    Uses no GPU, so that the devices can still be set up.
    """
    gpus = tf.config.get_visible_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    return [gpu.get("compute_capability") for gpu in details]


def fastest_precision(
    capabilities: Sequence[Capability | None], processor_has_bfloat16: bool = False
) -> str:
    """The precision of `auto` on these GPUs, or without any on the processor.

    bfloat16 needs no loss scaling and has units from Ampere (8.0) on; float16 has units from Volta
    (7.0) on. Older and unknown cards compute in float32. So do TPUs, and processors except those
    with fast products of bfloat16, whose other operations are faster in float32.
    """
    if not capabilities:
        return "bfloat16_base" if processor_has_bfloat16 else "float32"
    known = [capability for capability in capabilities if capability]
    if len(known) < len(capabilities) or min(known) < (7, 0):
        return "float32"
    return "bfloat16" if min(known) >= (8, 0) else "float16"


def configure_numerics(tf32: bool, deterministic: bool) -> None:
    """Sets how this process computes from now on.

    Args:
      tf32: whether GPUs from Ampere on multiply float32 in TF32, which is TensorFlow's default.
      deterministic: whether each operation gives the same bytes each time, also on a GPU; it stays
        on. XLA reads its flags once, at its first compilation.
    """
    tf.config.experimental.enable_tensor_float_32_execution(tf32)
    if deterministic:
        flags = os.environ.get("XLA_FLAGS", "").split()
        if DETERMINISTIC_XLA not in flags:
            os.environ["XLA_FLAGS"] = " ".join([*flags, DETERMINISTIC_XLA])
        tf.config.experimental.enable_op_determinism()
