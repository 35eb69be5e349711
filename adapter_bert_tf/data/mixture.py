"""Sampling of multitask batches."""

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import Features, sort_pools
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

Temperature = float | Literal["annealed"]


def parse_temperature(text: str) -> Temperature:
    """Parses a temperature: a number from 1, `inf` or `annealed`. Raises `InputError`."""
    if text == "annealed":
        return "annealed"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 1:
        raise InputError(
            "A sampling temperature is a number from 1 (proportional to the numbers of examples), "
            f"inf (all tasks equal), or annealed. Received: {preview(text)}"
        )
    return value


def task_proportions(
    counts: Sequence[int], temperature: Temperature, epoch: int = 1, epochs: int = 1
) -> np.ndarray:
    """Returns the probability of each task in a batch row, float64 `[tasks]`.

    With a temperature T it is proportional to N^(1/T) (Mahabadi et al. 2021, section 3), where N
    are the `counts` of examples. Annealed, it is proportional to N^a with a = 1 - 0.8 (epoch - 1) /
    (epochs - 1) (Stickland and Murray 2019, section 4.1): a is 1 in the first epoch and 0.2 in the
    last; with one epoch it is 1.
    """
    if temperature == "annealed":
        power = 1 - 0.8 * (epoch - 1) / max(epochs - 1, 1)
    else:
        power = 1 / temperature
    logs = power * np.log(np.asarray(counts, np.float64))
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def plan_mixture(
    counts: Sequence[int],
    lengths: np.ndarray,
    batch_size: int,
    steps: int,
    seed: int,
    temperature: Temperature,
    epochs: float = 1,
    group_by_length: str | None = "epoch",
) -> np.ndarray:
    """Plans the tasks and examples of each batch: int64 `[steps, batch_size]`, indices of examples.

    Every row draws its task, then takes the task's next example. A task's examples come in random
    order, and each comes once before any is repeated. `counts` are the tasks' numbers of examples,
    `lengths` those of all examples, one task after the other. `epochs`, rounded up, are for
    annealing; `group_by_length` is as in `batches.pool_sizes`, None for no sorting.
    """
    rng, epoch_count = np.random.default_rng(seed), max(math.ceil(epochs), 1)
    ends = [steps * epoch // epoch_count for epoch in range(epoch_count + 1)]
    tasks = _draw_tasks(rng, counts, batch_size, ends, temperature)
    rows = np.empty_like(tasks)
    for task, (first, count) in enumerate(zip(np.cumsum([0, *counts]), counts, strict=False)):
        positions = np.flatnonzero(tasks == task)
        permutations = [rng.permutation(count) for _ in range(-(-len(positions) // count))]
        rows[positions] = (
            first + np.concatenate([*permutations, np.zeros(0, np.int64)])[: len(positions)]
        )
    plan = rows.reshape(steps, batch_size)
    if temperature != "annealed":
        return sort_pools(plan, lengths, rng, group_by_length)
    # Sorting across epochs would change the proportions of an epoch.
    parts = [plan[start:end] for start, end in itertools.pairwise(ends)]
    return np.concatenate([sort_pools(part, lengths, rng, group_by_length) for part in parts])


def _draw_tasks(rng, counts, batch_size, ends, temperature):
    """Draws the task of each row, int64 `[steps * batch_size]`; `ends` are epoch ends in steps."""
    draws = []
    for epoch, (start, end) in enumerate(itertools.pairwise(ends), 1):
        proportions = task_proportions(counts, temperature, epoch, len(ends) - 1)
        draws.append(rng.choice(len(counts), size=(end - start) * batch_size, p=proportions))
    return np.concatenate(draws)


def concatenate(parts: Sequence[Features]) -> Features:
    """Concatenates the examples of several tasks; their labels have equal dtypes and shapes."""
    numbers = [np.full(len(part), task, np.int32) for task, part in enumerate(parts)]
    return Features(
        ids=tf.concat([part.ids for part in parts], 0),
        types=tf.concat([part.types for part in parts], 0),
        labels=tf.concat([part.labels for part in parts], 0),
        lengths=np.concatenate([part.lengths for part in parts]),
        cut=np.concatenate([part.cut for part in parts]),
        task_ids=np.concatenate(numbers),
    )
