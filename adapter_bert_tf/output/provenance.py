"""Command line, versions and memory of this process, for records."""

import importlib.metadata
import os
import resource
import shlex
import sys

import adapter_bert_tf

PACKAGES = ("tensorflow", "tensorflow-text", "tf-models-official", "tf-keras", "numpy")


def command() -> str:
    """Returns the command line of this process, as text that any file can hold."""
    line = shlex.join([*_program(sys.argv[0]), *sys.argv[1:]])
    return line.encode("utf-8", "backslashreplace").decode()


def _program(name: str) -> list[str]:
    """Returns the words that start this process, given its `sys.argv[0]`."""
    if name.startswith("adapter-bert ") or os.path.basename(name) == "adapter-bert":
        return ["adapter-bert"]  # In `adapter-bert classify` the second word comes again.
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if os.path.basename(name) == "__main__.py" and spec is not None:
        return ["python", "-m", spec.name.removesuffix(".__main__")]
    return ["python", name]


def peak_memory_mb() -> float:
    """Returns the largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def installed_versions() -> dict[str, str]:
    """Returns a dict from package to installed version, with Python and this package."""
    own = {"python": sys.version.split()[0], "adapter_bert_tf": adapter_bert_tf.__version__}
    return own | {name: importlib.metadata.version(name) for name in PACKAGES}
