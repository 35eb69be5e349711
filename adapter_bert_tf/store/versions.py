"""Which versions of which packages wrote a file."""

import importlib.metadata
import sys

import adapter_bert_tf

PACKAGES = ("tensorflow", "tensorflow-text", "tf-models-official", "tf-keras", "numpy")


def versions():
    """Dict from package to installed version, Python's and ours among them."""
    ours = {"python": sys.version.split()[0], "adapter_bert_tf": adapter_bert_tf.__version__}
    return ours | {name: importlib.metadata.version(name) for name in PACKAGES}
