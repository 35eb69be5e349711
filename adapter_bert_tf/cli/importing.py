"""Imports TensorFlow without libraries that it loads if they are there, and commands do not need.

They take a third of the time of the import.
"""

import importlib
import sys
from collections.abc import Collection

from adapter_bert_tf.cli import compilation_cache

# Google's API client finds Cloud TPUs by name; pandas, PIL and scipy are for data that `fit` is
# given, h5py is for files of Keras.
OPTIONAL = ("googleapiclient", "h5py", "pandas", "PIL", "scipy")


def import_tensorflow(hidden: Collection[str] = OPTIONAL, deterministic: bool = False) -> None:
    """Imports TensorFlow and tf_keras, which never find the hidden libraries; later imports do.

    `deterministic` is as in `compilation_cache.use`, which comes first.
    """
    compilation_cache.use(deterministic=deterministic)
    names = [name for name in hidden if name not in sys.modules]
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
    try:
        importlib.import_module("tensorflow")
        importlib.import_module("tf_keras").Model  # noqa: B018 (a lazy module)
    finally:
        for name in names:
            del sys.modules[name]
