"""Batches of several tasks: how often each is drawn, and which of its examples come when."""

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import Features, group
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

Temperature = float | Literal["annealed"]


def parse_temperature(text: str) -> Temperature:
    """A temperature from text: a number from 1, `inf` or `annealed`. Raises `InputError`."""
    if text == "annealed":
        return "annealed"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 1:
        raise InputError(
            "A sampling temperature is a number from 1 (shares as the numbers of examples), inf "
            f"(equal shares), or annealed. Received: {preview(text)}"
        )
    return value


def shares(
    counts: Sequence[int], temperature: Temperature, epoch: int = 1, epochs: int = 1
) -> np.ndarray:
    """The share of each task in the rows that are drawn.

    With a temperature T it is proportional to N^(1/T) (Mahabadi et al. 2021, section 3). Annealed,
    it is proportional to N^a with a = 1 - 0.8 (epoch - 1) / (epochs - 1) (Stickland and Murray
    2019, section 4.1): 1 in the first epoch and 0.2 in the last; of one epoch it is 1.

    Args:
      counts: examples of each task.
      temperature: a number from 1, `inf` among them, or `annealed`.
      epoch, epochs: from 1, for `annealed`.

    Returns:
      float64 `[tasks]`, of sum 1.
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
    """Which examples of which tasks go into which batch: a function of its arguments alone.

    Every row is drawn by itself, first its task and then that task's next example. A task's
    examples come in random order, and all before one comes again.

    Args:
      counts: examples of each task.
      lengths: int `[examples]` of all tasks, one after the other.
      batch_size: rows a batch, over all replicas.
      steps: number of batches.
      seed: of the draws.
      temperature: as in `shares`.
      epochs: in how many the annealed form divides the steps, rounded up.
      group_by_length: as in `batches.pools`; None for no order by length.

    Returns:
      int64 `[steps, batch_size]`, indices of examples.
    """
    rng, whole = np.random.default_rng(seed), max(math.ceil(epochs), 1)
    ends = [steps * epoch // whole for epoch in range(whole + 1)]
    drawn = _draw_tasks(rng, counts, batch_size, ends, temperature)
    rows = np.empty_like(drawn)
    for task, (first, count) in enumerate(zip(np.cumsum([0, *counts]), counts, strict=False)):
        places = np.flatnonzero(drawn == task)
        passes = [rng.permutation(count) for _ in range(-(-len(places) // count))]
        rows[places] = first + np.concatenate([*passes, np.zeros(0, np.int64)])[: len(places)]
    plan = rows.reshape(steps, batch_size)
    if temperature != "annealed":
        return group(plan, lengths, rng, group_by_length)
    # Rows that would come into a batch of another epoch would change its shares.
    parts = [plan[start:end] for start, end in itertools.pairwise(ends)]
    return np.concatenate([group(part, lengths, rng, group_by_length) for part in parts])


def _draw_tasks(rng, counts, batch_size, ends, temperature):
    """int64 `[steps * batch_size]`, the task of each row; `ends` are the epochs', in steps."""
    epochs = len(ends) - 1
    drawn = [
        rng.choice(
            len(counts),
            size=(ends[epoch] - ends[epoch - 1]) * batch_size,
            p=shares(counts, temperature, epoch, epochs),
        )
        for epoch in range(1, epochs + 1)
    ]
    return np.concatenate(drawn)


def together(parts: Sequence[Features]) -> Features:
    """The examples of several tasks as one `Features`, one task after the other.

    Args:
      parts: `Features` of each task, with labels of one type and shape.
    """
    numbers = [np.full(len(part), task, np.int32) for task, part in enumerate(parts)]
    return Features(
        ids=tf.concat([part.ids for part in parts], 0),
        types=tf.concat([part.types for part in parts], 0),
        labels=tf.concat([part.labels for part in parts], 0),
        lengths=np.concatenate([part.lengths for part in parts]),
        cut=np.concatenate([part.cut for part in parts]),
        task_ids=np.concatenate(numbers),
    )
