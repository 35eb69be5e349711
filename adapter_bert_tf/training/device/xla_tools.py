"""What XLA needs of CUDA's toolkit to compile for a GPU, looked for where TensorFlow 2.20 looks.

TensorFlow's package is built without the libraries that could take the place of `ptxas`.
"""

import dataclasses
import functools
import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator
from typing import TypeAlias

Version: TypeAlias = tuple[int, ...]

PTXAS, LOWEST_PTXAS = "ptxas", (11, 8)
LIBDEVICE_FOLDER, LIBDEVICE = "nvvm/libdevice", "libdevice.10.bc"
DATA_FLAG = "--xla_gpu_cuda_data_dir"


@dataclasses.dataclass(frozen=True)
class Tool:
    """A program of CUDA's toolkit; no `path` if it is not found."""

    path: str = ""
    version: Version = ()


@functools.cache
def missing_tools() -> tuple[str, ...]:
    """Names of what XLA does not find on this machine; looks for it once."""
    found = {PTXAS: find_ptxas().path, LIBDEVICE: find_libdevice()}
    return tuple(name for name, path in found.items() if not path)


def parse_version(text: str) -> Version:
    """Returns (12, 5, 82) for "12.5.82"."""
    return tuple(int(part) for part in text.split("."))


def find_ptxas() -> Tool:
    """Finds the first program from `LOWEST_PTXAS` on; XLA finishes its code for a card with it."""
    in_path = os.environ.get("PATH", "").split(":")
    for folder in [*_folders_of_flags("bin"), *in_path, *_toolkits("bin")]:
        path = os.path.join(folder, PTXAS)
        if os.path.isfile(path) and (version := _tool_version(path)) >= LOWEST_PTXAS:
            return Tool(path, version)
    return Tool()


def _tool_version(path: str) -> Version:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"\bV(\d+\.\d+\.\d+)\b", done.stdout)
    return parse_version(found[1]) if found else ()


def find_libdevice() -> str:
    """Path of CUDA's library of mathematical functions, which XLA links; "" if not found."""
    folders = [*_folders_of_flags(LIBDEVICE_FOLDER), *_toolkits(LIBDEVICE_FOLDER)]
    paths = [os.path.join(folder, LIBDEVICE) for folder in folders]
    return next((path for path in paths if os.path.exists(path)), "")


def _folders_of_flags(inner: str) -> Iterator[str]:
    for flag in os.environ.get("XLA_FLAGS", "").split():
        if flag.startswith(f"{DATA_FLAG}="):
            yield os.path.join(flag.partition("=")[2], inner)


def _toolkits(inner: str) -> list[str]:
    places = ("./cuda_sdk_lib", "/usr/local/cuda", "/opt/cuda")
    return [os.path.join(place, inner) for place in (*places, f"{pip_folder()}/cuda_nvcc")]


def pip_folder() -> str:
    """Returns the folder of NVIDIA's packages for pip, next to TensorFlow; need not exist."""
    spec = importlib.util.find_spec("tensorflow")
    tensorflow = os.path.dirname(spec.origin) if spec and spec.origin else ""
    return os.path.join(os.path.dirname(tensorflow), "nvidia")
