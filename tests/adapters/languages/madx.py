"""The BERT, the adapters and the figures of AdapterHub in `tests/golden/madx/stack.json`."""

import json

import numpy as np
import safetensors.numpy

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.languages.invertible import PLACE, InvertibleConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from tests import support

GOLDEN = json.loads((support.GOLDEN.parent / "madx" / "stack.json").read_text())
OUTPUTS, CONFIG = GOLDEN["outputs"], GOLDEN["config"]
PFEIFFER = {"activation": "relu", "sublayers": ("feed_forward",), "normalize_input": True}
TASK = AdapterConfig(4, **PFEIFFER)
LANGUAGES = {
    name: UnionConfig((InvertibleConfig(), AdapterConfig(8, layers=layers, **PFEIFFER)))
    for name, layers in (("lang", None), ("other", None), ("lang_upper_out", (0,)))
}
INPUTS = {
    ours: np.array(GOLDEN["inputs"][theirs], np.int32)
    for ours, theirs in (
        ("input_word_ids", "input_ids"),
        ("input_mask", "attention_mask"),
        ("input_type_ids", "token_type_ids"),
    )
}


def write_base(folder):
    """Writes the BERT as a folder of Hugging Face's."""
    folder.mkdir(exist_ok=True)
    weights = {
        name: np.array(value, np.float32)
        for name, value in GOLDEN["weights"].items()
        if name.startswith("bert.") and "adapters" not in name
    }
    safetensors.numpy.save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG | {"model_type": "bert"}))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *(f"w{i}" for i in range(CONFIG["vocab_size"] - len(special)))]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    return str(folder)


def values_of(name):
    """The weights of an adapter, by common name."""
    values = {}
    for path, value in GOLDEN["weights"].items():
        value, parts = np.array(value, np.float32).T, path.split(".")
        kind = {"weight": "kernel", "bias": "bias"}.get(parts[-1])
        if f".output.adapters.{name}." in path:
            part = "down" if "adapter_down" in path else "up"
            values[f"adapters/layer_{parts[3]}/feed_forward/{part}_{kind}"] = value
        if path.startswith(f"bert.invertible_adapters.{name}."):
            part = {"0": "down", "2": "up"}[parts[-2]]
            values[f"{PLACE}/{parts[3]}/{part}_{kind}"] = value
    return values
