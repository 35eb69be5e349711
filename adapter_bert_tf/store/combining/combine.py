"""Averages of adapters, and adapters without their lowest layers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.errors import Conflict, InputError, Mismatch
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.combining import arithmetic
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


def average(
    adapters: Sequence[SavedAdapter],
    method: str = "mean",
    shares: Sequence[float] = (),
    density: float = 0.5,
    seed: int = 0,
) -> SavedAdapter:
    """Combines the weights of adapters of one shape and base into one adapter.

    Args:
      adapters: two or more.
      method: key of `arithmetic.METHODS`, for the variables of adapters. Heads, poolers and
        LayerNorms, which are not near zero, always get the mean.
      shares: how much each adapter counts; the default counts all alike.
      density: share of the values that `ties` and `dare` keep.
      seed: of the values that `dare` keeps.

    Raises:
      InputError: for fewer than two adapters, different shapes, or shares of another number.
    """
    if len(adapters) < 2:
        raise InputError(f"An average needs at least two adapters. Received: {len(adapters)}")
    _check_options(len(adapters), method, shares, density)
    first, *others = [unmeasured(saved.config) for saved in adapters]
    for other in others:
        differences = [k for k in (*SHAPE_KEYS, *OPTIONAL_KEYS) if other.get(k) != first.get(k)]
        if differences:
            key = differences[0]
            raise Mismatch(
                f"Only adapters of one shape and base can be averaged; these differ in "
                f"{differences}: {preview(first.get(key))} and {preview(other.get(key))}"
            )
    options = arithmetic.options_for(method, len(adapters), shares, density, seed)
    means = arithmetic.options_for("mean", len(adapters), shares)
    of_adapter = set(_module_variables(first))
    weights = {}
    for name in sorted(adapters[0].weights):  # In this order `dare` draws.
        stack = np.stack([saved.weights[name].astype(np.float64) for saved in adapters])
        combined = (
            arithmetic.METHODS[method](stack, options)
            if name in of_adapter
            else arithmetic.weighted_mean(stack, means)
        )
        weights[name] = combined.astype(np.float32)
    tasks = dict.fromkeys(saved.config["task"] for saved in adapters)
    names = dict.fromkeys(contents.name_of(saved.config) for saved in adapters)
    config = derive(first, "average", [adapter_source(saved.config) for saved in adapters])
    config |= {"task": "+".join(tasks), "versions": installed_versions()}
    config = contents.named(config, "+".join(names))
    if any(saved.config.get(key) != first.get(key) for saved in adapters for key in SPLIT_KEYS):
        config |= {"fold": MIXED_SPLITS, "split_seed": None}
    return SavedAdapter(config, weights, adapters[0].members)


def _check_options(count: int, method: str, shares: Sequence[float], density: float) -> None:
    if method not in arithmetic.METHODS:
        known = list(arithmetic.METHODS)
        raise InputError(f"method must be one of {known}. Received: {preview(method)}")
    if shares and (len(shares) != count or not np.isfinite(sum(shares)) or not sum(shares)):
        raise InputError(
            f"shares must be {count} numbers, one for each adapter, whose sum is not 0. "
            f"Received: {preview(list(shares))}",
        )
    if not 0 < density <= 1:
        raise InputError(f"density must be above 0, at most 1. Received: {density}")


def _module_variables(config: Mapping[str, Any]) -> list[str]:
    """The common names of the variables of an adapter's module."""
    adapter = contents.adapter_of(config)
    return [] if adapter is None else list(adapter.specs(config["base"]))
