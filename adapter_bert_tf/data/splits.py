"""Random divisions of examples: seeded, duplicates on one side, every class in training."""

import collections
from typing import Any

import numpy as np


def divide(keys, labels, shares, seed):
    """Divides examples at random.

    Args:
      keys: `[examples]`, hashable; examples with equal keys stay together.
      labels: `[examples]`, the labels of each as a tuple, or None. The first part gets at least
        one example of each label.
      shares: of the parts, with sum 1.
      seed: the same seed gives the same division.

    Returns:
      list of int lists: each part's examples, in file order. A part can be empty.
    """
    by_key = collections.defaultdict(list)
    for i, key in enumerate(keys):
        by_key[key].append(i)
    groups = list(by_key.values())
    order = np.random.default_rng(seed).permutation(len(groups))
    first, rest = _one_of_each_label([groups[i] for i in order], labels)
    borders = np.cumsum(shares) * len(keys)
    parts = [[i for group in first for i in group], *([] for _ in shares[1:])]
    done, part = len(parts[0]), 0
    for group in rest:
        # A group goes where its middle falls: parts miss their share by half a group at most.
        while part < len(shares) - 1 and done + len(group) / 2 > borders[part]:
            part += 1
        parts[part].extend(group)
        done += len(group)
    return [sorted(part) for part in parts]


def _one_of_each_label(groups, labels):
    """(groups in which a label comes for the first time, the others)."""
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


def subset(labels, number, seed):
    """Chooses examples at random so that the labels keep their shares, by largest remainders.

    Args:
      labels: `[examples]`.
      number: of examples to choose.
      seed: the same seed gives the same choice.

    Returns:
      int list, in file order. Each label is chosen at least once if `number` allows.
    """
    rng = np.random.default_rng(seed)
    members = collections.defaultdict(list)
    for i in rng.permutation(len(labels)):
        members[labels[i]].append(int(i))
    names = sorted(members)
    exact = np.array([len(members[name]) for name in names]) * (number / len(labels))
    quota = np.floor(exact).astype(int)
    if number >= len(names):
        quota = np.maximum(quota, 1)
    by_need = np.argsort(quota - exact, kind="stable")
    while quota.sum() != number:
        short = quota.sum() < number
        for i in by_need if short else by_need[::-1]:
            if quota.sum() != number and (short or quota[i] > 1):
                quota[i] += 1 if short else -1
    return sorted(i for name, q in zip(names, quota, strict=True) for i in members[name][:q])
