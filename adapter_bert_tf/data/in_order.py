"""Maps what is read part by part, on several threads, without having all of it in memory."""

import collections
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import TypeVar

THREADS = min(os.cpu_count() or 1, 16)
T = TypeVar("T")
R = TypeVar("R")


def map_in_order(function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
    """Yields items and their results in order; threads compute, a few items ahead.

    `function` may use the cores at the same time if it releases Python's lock, as TensorFlow does.
    """
    waiting: collections.deque[tuple[T, futures.Future[R]]] = collections.deque()
    with futures.ThreadPoolExecutor(THREADS) as pool:
        for item in items:
            waiting.append((item, pool.submit(function, item)))
            if len(waiting) > 2 * THREADS:
                first, result = waiting.popleft()
                yield first, result.result()
        while waiting:
            first, result = waiting.popleft()
            yield first, result.result()
