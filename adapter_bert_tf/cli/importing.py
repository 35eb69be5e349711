"""Imports TensorFlow quickly: without garbage collection or libraries that commands do not need.

TensorFlow loads these libraries if they are there, which takes a third of the time of the import.
Python's garbage collector takes another part (`lazy.nothing_collected`).
"""

import gc
import importlib
import sys
from collections.abc import Collection

from adapter_bert_tf.cli import compilation_cache
from adapter_bert_tf.lazy import nothing_collected

# Google's API client finds Cloud TPUs by name; pandas, PIL and scipy are for data that `fit` is
# given, h5py is for files of Keras.
OPTIONAL = ("googleapiclient", "h5py", "pandas", "PIL", "scipy")


def import_tensorflow(
    *modules: str, hidden: Collection[str] = OPTIONAL, deterministic: bool = False
) -> None:
    """Imports TensorFlow and tf_keras, then modules that need them.

    TensorFlow and tf_keras never find the hidden libraries; later imports do. `deterministic` is as
    in `compilation_cache.use`, which comes first. Python's garbage collector never looks at what
    was imported, not even when the process ends.
    """
    compilation_cache.use(deterministic=deterministic)
    is_first = "tensorflow" not in sys.modules
    with nothing_collected():
        _import_without(hidden)
        for module in modules:
            importlib.import_module(module)
        if is_first:  # Later there is more than modules, which may become garbage.
            gc.freeze()


def _import_without(hidden: Collection[str]) -> None:
    names = [name for name in hidden if name not in sys.modules]
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
    try:
        importlib.import_module("tensorflow")
        importlib.import_module("tf_keras").Model  # noqa: B018 (a lazy module)
    finally:
        for name in names:
            del sys.modules[name]
