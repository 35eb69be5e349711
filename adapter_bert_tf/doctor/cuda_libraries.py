"""Libraries of CUDA, looked for where TensorFlow 2.20 looks for them."""

import ctypes
import glob
import os
import re

from adapter_bert_tf.doctor.gpu_facts import Library
from adapter_bert_tf.training.device.xla_tools import Version, pip_folder

# Names that TensorFlow 2.20 opens, with the folder of NVIDIA's package for pip. (The wheel contains
# NCCL, and opens CUPTI only for profiles.)
LIBRARIES = {
    "libcudart.so.12": "cuda_runtime",
    "libcublas.so.12": "cublas",
    "libcublasLt.so.12": "cublas",
    "libcufft.so.11": "cufft",
    "libcusolver.so.11": "cusolver",
    "libcusparse.so.12": "cusparse",
    "libcudnn.so.9": "cudnn",
}
SYSTEM_FOLDERS = ("/usr/local/cuda*/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")


def read_libraries() -> tuple[Library, ...]:
    """Opens each of `LIBRARIES`, as TensorFlow does when it looks for GPUs."""
    return tuple(_open(name, folder) for name, folder in LIBRARIES.items())


def _open(name: str, folder: str) -> Library:
    # In the order of the dynamic loader: TensorFlow names pip's folders in its RUNPATH, and the
    # system's come last.
    folders = [*_library_path(), os.path.join(pip_folder(), folder, "lib")]
    paths = [os.path.join(place, name) for place in folders]
    path = next((path for path in paths if os.path.exists(path)), name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        # A file that is there may lack a library that it needs itself, which the error names.
        text = str(error).partition(": cannot open")[0]
        missing = "not found" if text == name else f"needs {text}, which is not found"
        return Library(name, error=missing, others=_others(name))
    return Library(name, path, version=_version(name, library))


def _library_path() -> list[str]:
    return [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]


def _version(name: str, library: ctypes.CDLL) -> Version:
    """The version of CUDA's runtime and of cuDNN; others are not asked."""
    if name.startswith("libcudart"):
        value = ctypes.c_int()
        library.cudaRuntimeGetVersion(ctypes.byref(value))
        return value.value // 1000, value.value % 1000 // 10
    if name.startswith("libcudnn"):
        library.cudnnGetVersion.restype = ctypes.c_size_t
        number = library.cudnnGetVersion()
        return number // 10000, number % 10000 // 100, number % 100
    return ()


def _others(name: str) -> tuple[str, ...]:
    """Names of other versions of a library, in the folders where one may expect it."""
    stem = name.partition(".so")[0]
    folders = [*_library_path(), os.path.join(pip_folder(), "*", "lib"), *SYSTEM_FOLDERS]
    paths = [path for folder in folders for path in glob.glob(f"{folder}/{stem}.so.[0-9]*")]
    names = {re.sub(r"(\.so\.\d+).*", r"\1", os.path.basename(path)) for path in paths}
    return tuple(sorted(names - {name}))
