"""Seeded random splits of examples, without duplicates across splits."""

import collections
from typing import Any

import numpy as np


def random_split(keys, labels, proportions, seed):
    """Splits examples at random; the same `seed` gives the same split.

    Examples with equal `keys` stay together. With `labels`, a tuple for each example, the first
    part gets at least one example of each label. `proportions` have the sum 1. Returns each part's
    examples, int lists in file order; a part can be empty.
    """
    by_key = collections.defaultdict(list)
    for i, key in enumerate(keys):
        by_key[key].append(i)
    groups = list(by_key.values())
    order = np.random.default_rng(seed).permutation(len(groups))
    first, rest = _cover_labels([groups[i] for i in order], labels)
    borders = np.cumsum(proportions) * len(keys)
    parts = [[i for group in first for i in group], *([] for _ in proportions[1:])]
    count, part = len(parts[0]), 0
    for group in rest:
        # A group goes where its middle falls, so the error is at most half a group.
        while part < len(proportions) - 1 and count + len(group) / 2 > borders[part]:
            part += 1
        parts[part].extend(group)
        count += len(group)
    return [sorted(part) for part in parts]


def _cover_labels(groups, labels):
    """Returns (groups in which a label occurs for the first time, other groups)."""
    if labels is None:
        return [], groups
    seen: set[Any] = set()
    first: list[list[int]] = []
    rest: list[list[int]] = []
    for group in groups:
        new = {label for i in group for label in labels[i]} - seen
        seen |= new
        (first if new else rest).append(group)
    return first, rest


def stratified_subset(labels, size, seed):
    """Selects `size` examples with the same proportions of labels, by largest remainders.

    Returns their numbers in file order. Each label occurs at least once if `size` allows.
    """
    rng = np.random.default_rng(seed)
    members = collections.defaultdict(list)
    for i in rng.permutation(len(labels)):
        members[labels[i]].append(int(i))
    names = sorted(members)
    exact = np.array([len(members[name]) for name in names]) * (size / len(labels))
    quota = np.floor(exact).astype(int)
    if size >= len(names):
        quota = np.maximum(quota, 1)
    order = np.argsort(quota - exact, kind="stable")
    while quota.sum() != size:
        too_few = quota.sum() < size
        for i in order if too_few else order[::-1]:
            if quota.sum() != size and (too_few or quota[i] > 1):
                quota[i] += 1 if too_few else -1
    return sorted(i for name, q in zip(names, quota, strict=True) for i in members[name][:q])
