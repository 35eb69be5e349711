"""XLA's flags for GPUs, and its cache of compiled programs on disk.

TensorFlow reads these environment variables when it is imported. Values that the user has set stay
and win. A program runs without further checks, so the cache is a folder that only its owner can
write, for one version of everything that the programs depend on.
"""

import contextlib
import glob
import hashlib
import importlib.metadata
import os
import pathlib
import shutil
import stat
import subprocess
from collections.abc import Mapping, MutableMapping
from typing import BinaryIO

from adapter_bert_tf.storage import cache_folder
from adapter_bert_tf.training.device.visibility import VISIBLE, hides_all

MOST_BYTES = 2 << 30  # Of all programs; a BERT-base step has some tens of MB.
LEAST_FREE = 1 << 30  # A full disk would end the run: TensorFlow does not ignore such errors.
DRIVER_FILE, GPU_FILES = "/proc/driver/nvidia/version", "/proc/driver/nvidia/gpus/*/information"
QUERY = ("nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader")
PACKAGES = ("tensorflow", "nvidia-cublas-cu12", "nvidia-cudnn-cu12")
# XLA compiles dozens of Triton kernels for each matrix product and takes the fastest: 399 for 12
# products, 3.7 minutes on four threads (openxla/xla#13108). Without them it takes cuBLAS.
FAST_COMPILATION = "--xla_gpu_enable_triton_gemm=false"


def use(environ: MutableMapping[str, str] = os.environ, deterministic: bool = False) -> None:
    """Sets XLA's flags, before TensorFlow is imported; does nothing without an NVIDIA GPU.

    Args:
      environ: environment variables to change.
      deterministic: whether equal runs must have equal bytes. Then no program of an earlier run is
        used, which may have been compiled without that.
    """
    with contextlib.suppress(OSError, OverflowError):  # Then it does without.
        _use(environ, deterministic)


def _use(environ: MutableMapping[str, str], deterministic: bool) -> None:
    if hides_all(environ.get(VISIBLE)) or not (gpus := _gpus()):
        return
    users = environ.get("XLA_FLAGS", "")
    environ["XLA_FLAGS"] = f"{FAST_COMPILATION} {users}".strip()
    folder = cache_folder() / "xla" / _digest(gpus, environ)
    if deterministic or environ.get("TF_DETERMINISTIC_OPS") or not _is_safe(folder):
        return
    programs = folder / "programs"
    _tidy(programs)
    flags = {
        "XLA_FLAGS": f"--xla_gpu_per_fusion_autotune_cache_dir={folder / 'autotune'}",
        "TF_XLA_FLAGS": f"--tf_xla_persistent_cache_directory={programs} "
        "--tf_xla_persistent_cache_device_types=GPU,XLA_GPU_JIT",
    }
    for name, value in flags.items():  # The last of equal flags counts.
        environ[name] = f"{value} {environ.get(name, '')}".strip()


def _gpus() -> str:
    """Returns the models of the GPUs and the version of their driver; empty without a GPU."""
    models = [
        line
        for path in sorted(glob.glob(GPU_FILES))
        for line in pathlib.Path(path).read_text().splitlines()
        if line.startswith("Model")
    ]
    if models and os.path.exists(DRIVER_FILE):
        return "\n".join([pathlib.Path(DRIVER_FILE).read_text(), *models])
    if not shutil.which(QUERY[0]):
        return ""
    try:
        done = subprocess.run(QUERY, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _digest(gpus: str, environ: Mapping[str, str]) -> str:
    """Returns a name for all that decides what a compiled program is."""
    parts = [gpus, environ["XLA_FLAGS"], environ.get("LD_LIBRARY_PATH", "")]
    for name in PACKAGES:
        try:
            parts.append(importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            parts.append("")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _is_safe(folder: pathlib.Path) -> bool:
    """Makes the folder; returns whether only this user can write it, and there is room."""
    if any(character.isspace() or character in "'\"" for character in str(folder)):
        return False  # The flags have no such values.
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        return is_own and not status.st_mode & 0o022 and shutil.disk_usage(folder).free > LEAST_FREE
    except OSError:
        return False


def _tidy(programs: pathlib.Path) -> None:
    """Removes incomplete programs, and the oldest beyond `MOST_BYTES`.

    An incomplete one, after a loss of power for example, would end each run that needs it.
    """
    files = sorted(programs.glob("*.pb"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in files:
        total += path.stat().st_size
        if total > MOST_BYTES or not is_complete(path):
            path.unlink(missing_ok=True)


def is_complete(path: pathlib.Path) -> bool:
    """Whether a file is a whole protocol buffer of a key (1), an HLO module (2), a program (3)."""
    with path.open("rb") as file:
        for number in (1, 2, 3):
            if file.read(1) != bytes([number << 3 | 2]):  # A field with a length.
                return False
            file.seek(_varint(file), os.SEEK_CUR)
        return file.tell() == path.stat().st_size


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 63, 7):
        (byte,) = file.read(1) or b"\0"
        value |= (byte & 127) << shift
        if byte < 128:
            break
    return value
