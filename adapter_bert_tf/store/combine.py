"""Adapters made from saved ones without training."""

import numpy as np

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.multitask import TASKS, unmeasured

SAME = ("method", "tuning", "adapter", "head", "labels", "regression", "inputs", "base")
OF_SOME = ("members", TASKS)
DIVISION = ("fold", "split_seed")  # How the training data was divided.
SEVERAL_DIVISIONS = {"parts": "several"}  # As `fold`: all of the training data was trained on.


def without_lowest(saved, layers):
    """Without the adapters of the lowest `layers` layers (AdapterDrop, Rücklé et al. 2021).

    Raises:
      InputError: when there is nothing to drop, or nothing would be left.
    """
    adapter = contents.adapter_of(saved.config)
    if type(layers) is not int or layers < 0:
        raise InputError(f"The number of layers to leave out is 0 or more. Received: {layers!r}")
    if not layers:
        return saved
    if adapter is None:
        raise InputError(f"{saved.config['task']!r} has no adapters to drop.")
    kept = adapter.without_lowest(layers, saved.config["base"]["num_layers"])
    config = unmeasured(saved.config) | {"adapter": kept.to_dict()}
    names = contents.expected_shapes(config)
    return SavedAdapter(config, {name: saved.weights[name] for name in names})


def average(adapters):
    """The mean of the weights of adapters of one shape, such as those of several seeds.

    Args:
      adapters: list of `SavedAdapter`.

    Raises:
      InputError: when there are fewer than two, or they differ in what they are.
    """
    if len(adapters) < 2:
        raise InputError(f"An average needs at least two adapters. Received: {len(adapters)}")
    first, *others = [unmeasured(saved.config) for saved in adapters]
    for other in others:
        different = [k for k in (*SAME, *OF_SOME) if other.get(k) != first.get(k)]
        if different:
            key = different[0]
            raise InputError(
                f"Only adapters of one shape and base can be averaged; these differ "
                f"in {different}: {preview(first.get(key))} and {preview(other.get(key))}"
            )
    weights = {
        name: np.asarray(np.mean([a.weights[name] for a in adapters], 0, np.float64), np.float32)
        for name in adapters[0].weights
    }
    tasks = dict.fromkeys(saved.config["task"] for saved in adapters)
    config = {name: value for name, value in first.items() if name != "run"}
    config |= {"task": "+".join(tasks)}
    if any(saved.config.get(key) != first.get(key) for saved in adapters for key in DIVISION):
        config |= {"fold": SEVERAL_DIVISIONS, "split_seed": None}
    return SavedAdapter(config, weights, adapters[0].members)
