"""Edits of AdapterHub's files, for tests: the committed adapters in other valid forms."""

import json
import pathlib

import safetensors.numpy

from adapter_bert_tf.base.config import read_config
from tests.support import GOLDEN

HUB = GOLDEN.parent / "adapterhub"  # make.py there says how it was made.
VERSION = "adapters.1.3.0"  # Of the library, as its files name it.
BASE_CONFIG = read_config(str(HUB / "base" / "config.json"))


def edit_json(folder, file, **values):
    """Changes fields of a JSON file; those of its `config` if they begin with `config_`."""
    path = pathlib.Path(folder, file)
    content = json.loads(path.read_text())
    for name, value in values.items():
        target = content["config"] if name.startswith("config_") else content
        target[name.removeprefix("config_")] = value
    path.write_text(json.dumps(content))


def drop_json(folder, file, *names):
    """Removes fields of a JSON file and of its `config`."""
    path = pathlib.Path(folder, file)
    content = json.loads(path.read_text())
    for name in names:
        for target in (content, content["config"]):
            target.pop(name, None)
    path.write_text(json.dumps(content))


def edit_weights(folder, file, change):
    """Replaces the arrays of a file by the result of a function of their dict."""
    path = pathlib.Path(folder, file)
    safetensors.numpy.save_file(change(safetensors.numpy.load_file(path)), path)
