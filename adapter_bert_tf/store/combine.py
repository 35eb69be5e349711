"""New adapters from saved ones, without training."""

from collections.abc import Sequence

import numpy as np

from adapter_bert_tf.errors import Conflict, InputError, Mismatch
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.derivation import adapter_source, derive
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.multitask import TASKS, unmeasured

SHAPE_KEYS = ("method", "tuning", "adapter", "head", "labels", "regression", "inputs", "base")
OPTIONAL_KEYS = ("members", TASKS)
SPLIT_KEYS = ("fold", "split_seed", "dev_share")
MIXED_SPLITS = {"parts": "several"}  # As `fold`: training used all of the training data.


def drop_lowest_layers(saved: SavedAdapter, layers: int) -> SavedAdapter:
    """Drops the lowest adapters (AdapterDrop, Rücklé et al. 2021). Raises `InputError`."""
    adapter = contents.adapter_of(saved.config)
    if type(layers) is not int or layers < 0:
        raise InputError(f"The number of layers to drop must be 0 or more. Received: {layers!r}")
    if not layers:
        return saved
    if adapter is None:
        raise Conflict(f"{saved.config['task']!r} has no adapters to drop.")
    remaining = adapter.without_lowest(layers, saved.config["base"]["num_layers"])
    config = derive(unmeasured(saved.config), "drop", [adapter_source(saved.config)])
    config |= {"adapter": remaining.to_dict()}
    names = contents.expected_shapes(config)
    return SavedAdapter(config, {name: saved.weights[name] for name in names})


def average(adapters: Sequence[SavedAdapter]) -> SavedAdapter:
    """Averages the weights of adapters of one shape and base. Raises `InputError`."""
    if len(adapters) < 2:
        raise InputError(f"An average needs at least two adapters. Received: {len(adapters)}")
    first, *others = [unmeasured(saved.config) for saved in adapters]
    for other in others:
        differences = [k for k in (*SHAPE_KEYS, *OPTIONAL_KEYS) if other.get(k) != first.get(k)]
        if differences:
            key = differences[0]
            raise Mismatch(
                f"Only adapters of one shape and base can be averaged; these differ in "
                f"{differences}: {preview(first.get(key))} and {preview(other.get(key))}"
            )
    weights = {
        name: np.asarray(np.mean([a.weights[name] for a in adapters], 0, np.float64), np.float32)
        for name in adapters[0].weights
    }
    tasks = dict.fromkeys(saved.config["task"] for saved in adapters)
    names = dict.fromkeys(contents.name_of(saved.config) for saved in adapters)
    config = derive(first, "average", [adapter_source(saved.config) for saved in adapters])
    config |= {"task": "+".join(tasks), "versions": installed_versions()}
    config = contents.named(config, "+".join(names))
    if any(saved.config.get(key) != first.get(key) for saved in adapters for key in SPLIT_KEYS):
        config |= {"fold": MIXED_SPLITS, "split_seed": None}
    return SavedAdapter(config, weights, adapters[0].members)
