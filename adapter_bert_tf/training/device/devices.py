"""Set-up of GPUs, which must come before TensorFlow uses a device."""

import glob
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterable

import tensorflow as tf
from absl import logging

from adapter_bert_tf.config.sections.command import DeviceConfig
from adapter_bert_tf.errors import InputError, Unavailable
from adapter_bert_tf.training.device.visibility import VISIBLE, Capability, hides_all

NVIDIA = "0x10de"  # PCI vendor id.
DISPLAY = "0x03"  # PCI class.
WSL_DRIVER = "usr/lib/wsl/lib/libcuda.so.1"  # Windows puts it there, with its own driver.


def configure_devices(config: DeviceConfig) -> None:
    """Sets up the memory of the GPUs, and warns of a card that TensorFlow does not see.

    TensorFlow accepts these settings until it has used a device. Raises `InputError` for a memory
    limit that cannot be kept.
    """
    hide_unsupported_cards()
    if config.gpu_memory_limit:
        limit_memory(config.gpu_memory_limit)
    grow_memory()
    if not tf.config.list_physical_devices("GPU") and (problem := unused_card()):
        logging.log_first_n(logging.WARNING, "%s The computation runs on the CPU.", 1, problem)


def prepare_gpus() -> None:
    """Sets up GPUs for a process without settings: `configure_devices` without a limit."""
    hide_unsupported_cards()
    grow_memory()


def hide_unsupported_cards() -> None:
    """Hides GPUs that are newer than TensorFlow's code, with a warning.

    TensorFlow lists them, but its operations fail there, and XLA ends the process
    (tensorflow#89272). Older ones it ignores by itself.
    """
    names = tf.sysconfig.get_build_info().get("cuda_compute_capabilities")
    if not names:
        return
    highest = code_range(names)[1]
    gpus = tf.config.get_visible_devices("GPU")
    details = {gpu: tf.config.experimental.get_device_details(gpu) for gpu in gpus}
    known = {gpu: details[gpu].get("compute_capability") or (0, 0) for gpu in gpus}
    supported = [gpu for gpu in gpus if known[gpu][0] <= highest[0]]
    if len(supported) == len(gpus):
        return
    try:
        tf.config.set_visible_devices(supported, "GPU")
    except RuntimeError:  # TensorFlow has used the devices.
        return
    for gpu in gpus:
        if gpu not in supported:
            logging.warning(
                "The GPU %s is not used: it has compute capability %d.%d, and this TensorFlow has "
                "code up to %d.%d.%s",
                *(details[gpu].get("device_name", gpu.name), *known[gpu], *highest),
                "" if supported else " The computation runs on the CPU.",
            )


def code_range(names: Iterable[str]) -> tuple[Capability, Capability]:
    """Returns the lowest and the highest compute capability that TensorFlow has code for.

    Args:
      names: `cuda_compute_capabilities` of `tf.sysconfig.get_build_info()`: `sm_80` is code for 8.0
        and later 8.x, `compute_90` in addition PTX, which a driver compiles for later cards.
    """
    numbers = [int(digits[0]) for name in names if (digits := re.search(r"\d+", name))]
    known = [(number // 10, number % 10) for number in numbers]
    return min(known), max(known)


def grow_memory() -> None:
    """Lets TensorFlow take memory of the GPUs as it needs it, not all of it at the start.

    Changes nothing where the user has decided: in Python, in the environment variable
    `TF_FORCE_GPU_ALLOW_GROWTH`, which TensorFlow prefers, or by using the devices before.
    """
    get_growth = tf.config.experimental.get_memory_growth
    get_logical = tf.config.get_logical_device_configuration
    gpus = tf.config.get_visible_devices("GPU")
    # Not only for the others: growth may not differ between GPUs.
    if any(get_growth(gpu) is not None or get_logical(gpu) for gpu in gpus):
        return
    try:
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError:  # TensorFlow has used the devices.
        return


def limit_memory(megabytes: int) -> None:
    """Limits what this process takes of each GPU. Raises `InputError` if that is impossible."""
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        logging.warning("gpu_memory_limit has no effect: TensorFlow uses no GPU.")
    for gpu in gpus:
        limit = [tf.config.LogicalDeviceConfiguration(memory_limit=megabytes)]
        try:
            tf.config.set_logical_device_configuration(gpu, limit)
        except RuntimeError as error:
            raise Unavailable(
                f"gpu_memory_limit={megabytes} comes too late: TensorFlow has used the GPUs in "
                "this process. Start a new process.",
                f"gpu_memory_limit={megabytes}",
            ) from error
    if (most := largest_memory()) is not None and megabytes > most:
        raise InputError(
            f"gpu_memory_limit={megabytes} exceeds the memory of the GPU, {most} MB. Give less, or "
            "leave it out.",
            f"gpu_memory_limit={megabytes}",
        )


def largest_memory() -> int | None:
    """Returns the MB of the GPU with the most memory; None if `nvidia-smi` does not tell.

    Which of several GPUs TensorFlow uses, and in which order, `nvidia-smi` does not know.
    """
    words = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    if not shutil.which(words[0]):
        return None
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
        return max(int(line) for line in done.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def unused_card(root: str = "/") -> str | None:
    """Returns why TensorFlow may not see an NVIDIA card of this machine; None without a card.

    A card that the user hides, or that a container does not get, does not count.

    Args:
      root: the root of the file system; another one in tests.
    """
    if hides_all(os.environ.get(VISIBLE)):
        return None
    nodes = glob.glob(os.path.join(root, "dev", "nvidia[0-9]*"))
    if nodes or os.path.exists(os.path.join(root, WSL_DRIVER)):
        if not tf.test.is_built_with_cuda():
            return (
                "This machine has an NVIDIA GPU, and this TensorFlow cannot use it: it was built "
                f'without CUDA. Run: pip install "tensorflow[and-cuda]=={tf.__version__}"'
            )
        return (
            "This machine has an NVIDIA GPU, and TensorFlow does not see it: the driver is too "
            "old, or a library of CUDA is missing. `adapter-bert doctor` looks for it."
        )
    has_driver = os.path.exists(os.path.join(root, "proc", "driver", "nvidia"))
    if not has_driver and has_pci_card(root):
        return "This machine has an NVIDIA GPU without a driver. Install NVIDIA's driver."
    return None


def has_pci_card(root: str) -> bool:
    """Whether there is an NVIDIA card, with or without a driver."""
    for device in pathlib.Path(root, "sys", "bus", "pci", "devices").glob("*"):
        try:
            vendor, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == NVIDIA and kind.startswith(DISPLAY):
            return True
    return False
