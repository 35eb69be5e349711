"""Averages of adapters, and adapters without their lowest layers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.variable_specs import start_of
from adapter_bert_tf.errors import Conflict, InputError, Mismatch
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.checks import NORMS
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
      method: key of `arithmetic.METHODS`, for the variables of adapters, less what they start at.
        Heads, poolers, LayerNorms and gates always get the mean. `sum` of LoRA is exact: its rank
        is that of all together.
      shares: how much each adapter counts; the default counts all alike. They are normalized for
        `mean` only; the default is 1 for `ties`, as in PEFT, and 1 / count for the others.
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
        _check_same_shape(first, other)
    adapter, weights = contents.adapter_of(first), dict[str, np.ndarray]()
    if adapter is not None:
        options = arithmetic.options_for(method, len(adapters), shares, density, seed)
        adapter, weights = _combined(adapter, adapters, method, options, bool(shares))
    means = arithmetic.options_for("mean", len(adapters), shares)
    for name in adapters[0].weights.keys() - weights.keys():
        weights[name] = arithmetic.weighted_mean(_stack(name, adapters), means)
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    tasks = dict.fromkeys(saved.config["task"] for saved in adapters)
    names = dict.fromkeys(contents.name_of(saved.config) for saved in adapters)
    sources = [adapter_source(saved.config) for saved in adapters]
    given: dict[str, Any] = {"shares": list(map(float, shares))} if shares else {}
    read = {"density": float(density), "seed": int(seed)}  # JSON has no numbers of NumPy.
    given |= {name: read[name] for name in arithmetic.METHODS[method].reads}
    config = derive(first, "average", sources, method=method, **given)
    config |= {"task": "+".join(tasks), "versions": installed_versions()}
    config |= {} if adapter is None else {"adapter": adapter.to_dict()}
    config = contents.named(config, "+".join(names))
    if any(saved.config.get(key) != first.get(key) for saved in adapters for key in SPLIT_KEYS):
        config |= {"fold": MIXED_SPLITS, "split_seed": None}
    return SavedAdapter(config, weights, adapters[0].members)


def _check_same_shape(first: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raises `Mismatch` for two configs of different shapes or bases.

    A field that an earlier version did not record has its default, or is not known.
    """
    one, two = ({key: c.get(key) for key in (*SHAPE_KEYS, *OPTIONAL_KEYS)} for c in (first, other))
    for values, config in ((one, first), (two, other)):
        values["tuning"] = contents.tuning_of(config)
        values["adapter"] = contents.adapter_of(config)
    if None in (first["base"].get(NORMS), other["base"].get(NORMS)):
        one["base"], two["base"] = ({**c["base"], NORMS: None} for c in (first, other))
    if differences := [key for key in one if one[key] != two[key]]:
        key = differences[0]
        raise Mismatch(
            f"Only adapters of one shape and base can be averaged; these differ in "
            f"{differences}: {preview(one[key])} and {preview(two[key])}"
        )


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


def _combined(
    adapter: ModuleConfig,
    adapters: Sequence[SavedAdapter],
    method: str,
    options: arithmetic.Options,
    are_given: bool,
) -> tuple[ModuleConfig, dict[str, np.ndarray]]:
    """The configuration of the module and its values without gates.

    `are_given` is whether the user gave the shares.

    Of two factors each gets the root of a given share, and one its sign, so that their product
    counts as much as the share says, as in PEFT's `add_weighted_adapter`.
    """
    specs = adapter.specs(adapters[0].config["base"])
    names = {name for name in adapters[0].weights if name in specs and not specs[name].is_gate}
    summed, combined = adapter, dict[str, np.ndarray]()
    if method == "sum":
        values = [adapter.factor_values({n: s.weights[n] for n in names}) for s in adapters]
        summed, combined = adapter.weighted_sum(values, options.shares.tolist()) or (adapter, {})
    roots = np.sqrt(np.abs(options.shares))
    for name in sorted(names - combined.keys()):  # In this order `dare` draws.
        of_name, last = options, name.rpartition("/")[2]
        if last in adapter.factors and are_given and method != "mean":
            is_first = last == adapter.factors[0]
            of_name = options._replace(shares=roots * (np.sign(options.shares) if is_first else 1))
        start = start_of(specs[name])
        change = arithmetic.METHODS[method].combine(_stack(name, adapters) - start, of_name)
        combined[name] = start + change
    return summed, combined


def _stack(name: str, adapters: Sequence[SavedAdapter]) -> np.ndarray:
    """A variable of all adapters, float64 `[adapters, ...]`."""
    return np.stack([saved.weights[name].astype(np.float64) for saved in adapters])
