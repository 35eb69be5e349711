"""Versions of the installed packages, recorded in files."""

import importlib.metadata
import sys

import adapter_bert_tf

PACKAGES = ("tensorflow", "tensorflow-text", "tf-models-official", "tf-keras", "numpy")


def installed_versions():
    """Returns a dict from package to installed version, with Python and this package."""
    own = {"python": sys.version.split()[0], "adapter_bert_tf": adapter_bert_tf.__version__}
    return own | {name: importlib.metadata.version(name) for name in PACKAGES}
