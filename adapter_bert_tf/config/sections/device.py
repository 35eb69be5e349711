"""Devices and precision."""

import dataclasses
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import setting


@dataclasses.dataclass(frozen=True)
class DeviceConfig:
    """Devices and precision."""

    distribution: Literal["auto", "one_device", "mirrored", "multi_worker", "tpu"] = setting(
        "auto",
        "Devices to train on. auto: the GPUs of this machine, or else its CPU.",
        Role.DEVICES,
    )
    use_tpu: bool = setting(False, "Same as --distribution=tpu.", Role.DEVICES)
    precision: Literal["float32", "bfloat16", "bfloat16_base"] = setting(
        "float32",
        "Precision of computation. bfloat16_base: bfloat16 only in products with the base's "
        "kernels.",
        Role.DEVICES,
    )
    jit_compile: bool = setting(False, "Compile with XLA.", Role.DEVICES)
    pad_to: int | None = setting(
        None,
        "Batches are padded to their longest input, rounded up to a multiple of this; 0: always to "
        "--max_seq_length. Default: 2 on CPU, 8 on GPU, 32 with --jit_compile, 0 on TPU.",
        Role.DEVICES,
        lowest=0,
    )
    iterations_per_loop: int | None = setting(
        None,
        "Steps in one call, at most --save_checkpoints_steps. Default: 100 on TPU, else 1.",
        Role.PACE,
        lowest=1,
    )
    tpu_name: str | None = setting(None, "Name or grpc:// address of the TPU.", Role.ADDRESS)
    tpu_zone: str | None = setting(None, "Zone of the TPU.", Role.ADDRESS)
    gcp_project: str | None = setting(None, "Cloud project of the TPU.", Role.ADDRESS)
    master: str | None = setting(None, "Not used; kept for old command lines.", Role.UNUSED)
    num_tpu_cores: int = setting(8, "Not used: the TPU reports how many it has.", Role.UNUSED)
