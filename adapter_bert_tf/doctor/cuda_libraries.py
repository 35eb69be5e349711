"""Libraries and programs of CUDA, looked for where TensorFlow 2.20 looks for them."""

import ctypes
import glob
import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator

from adapter_bert_tf.doctor.gpu_facts import Library, Tool, Version, parse_version

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
PTXAS = "ptxas"
LOWEST_PTXAS = (11, 8)
LIBDEVICE_FOLDER, LIBDEVICE = "nvvm/libdevice", "libdevice.10.bc"
DATA_FLAG = "--xla_gpu_cuda_data_dir"
SYSTEM_FOLDERS = ("/usr/local/cuda*/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")


def read_libraries() -> tuple[Library, ...]:
    """Opens each of `LIBRARIES`, as TensorFlow does when it looks for GPUs."""
    return tuple(_open(name, folder) for name, folder in LIBRARIES.items())


def _open(name: str, folder: str) -> Library:
    # In the order of the dynamic loader: TensorFlow names pip's folders in its RUNPATH, and the
    # system's come last.
    folders = [*_library_path(), os.path.join(_pip_folder(), folder, "lib")]
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


def _pip_folder() -> str:
    """Folder of NVIDIA's packages for pip, next to TensorFlow; need not exist."""
    spec = importlib.util.find_spec("tensorflow")
    tensorflow = os.path.dirname(spec.origin) if spec and spec.origin else ""
    return os.path.join(os.path.dirname(tensorflow), "nvidia")


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
    folders = [*_library_path(), os.path.join(_pip_folder(), "*", "lib"), *SYSTEM_FOLDERS]
    paths = [path for folder in folders for path in glob.glob(f"{folder}/{stem}.so.[0-9]*")]
    names = {re.sub(r"(\.so\.\d+).*", r"\1", os.path.basename(path)) for path in paths}
    return tuple(sorted(names - {name}))


def find_ptxas() -> Tool:
    """Finds the program with which XLA turns its code into that of the card.

    The wheel is built without the libraries that could do it instead. XLA takes the first one
    from 11.8 on.
    """
    for folder in [*_folders_of_flags("bin"), *os.environ["PATH"].split(":"), *_toolkits("bin")]:
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
    return [os.path.join(place, inner) for place in (*places, f"{_pip_folder()}/cuda_nvcc")]
