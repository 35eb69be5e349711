"""Clients of a model server, in one process: each sends a request when it has its last answer."""

import asyncio
import dataclasses
import json
import pathlib
import random
import time
from collections.abc import Collection, Sequence

from benchmarks import runner

BODIES, WARM_SECONDS = 2000, 3.0
SPREAD, LEAST_WORDS, MOST_WORDS = 0.8, 3, 120  # Lognormal, as short messages and reviews are.
Sample = tuple[float, float]  # The start of a request, as `time.time()`, and its milliseconds.


def texts(count: int, words: int) -> list[str]:
    """Generated texts of 3 to 120 words, with a median of `words`."""
    rng = random.Random(0)
    known = pathlib.Path(runner.ROOT, "README.md").read_text().split()
    known = sorted({word for word in known if word.isalpha()})
    lengths = [int(words * rng.lognormvariate(0, SPREAD)) for _ in range(count)]
    lengths = [min(max(length, LEAST_WORDS), MOST_WORDS) for length in lengths]
    return [" ".join(rng.choices(known, k=length)) for length in lengths]


@dataclasses.dataclass(frozen=True)
class Asked:
    """What clients ask: a text in a request, of the tasks in turn.

    Args:
      tasks: all tasks.
      own: those that are asked by their own signature; the others by the signature `tasks`.
      words: the median of the words of a text.
    """

    tasks: Sequence[str]
    own: Collection[str]
    words: int

    def bodies(self) -> list[bytes]:
        """The bodies of the requests."""
        made = []
        for number, text in enumerate(texts(BODIES, self.words)):
            task = self.tasks[number % len(self.tasks)]
            inputs = {"text_a": [text]}
            if task not in self.own:
                inputs |= {"task": [task], "text_b": [""]}
            name = task if task in self.own else "tasks"
            made.append(json.dumps({"signature_name": name, "inputs": inputs}).encode())
        return made


def run(
    url: str, requests: Sequence[bytes], clients: int, seconds: float, most: int
) -> list[Sample]:
    """Sends requests for some seconds, or as many as `most`, and returns their times.

    Those of the first seconds do not count. With `most` it prints a line for each 1,000. Raises
    `RuntimeError` for a request that fails.
    """
    return asyncio.run(_run(url, requests, clients, seconds, most))


async def _run(
    url: str, requests: Sequence[bytes], clients: int, seconds: float, most: int
) -> list[Sample]:
    import aiohttp

    samples: list[Sample] = []
    sent, begin = 0, time.time()
    end = float("inf") if most else begin + WARM_SECONDS + seconds

    async def client(session: aiohttp.ClientSession) -> None:
        nonlocal sent
        while time.time() < end and (not most or sent < most):
            body = requests[sent % len(requests)]
            sent += 1
            start, clock = time.time(), time.perf_counter()
            async with session.post(url, data=body) as answer:
                content = await answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{answer.status}: {content[:300]!r}")
            if most or start >= begin + WARM_SECONDS:
                samples.append((start, 1000 * (time.perf_counter() - clock)))
            if most and len(samples) % 1000 == 0:
                print(json.dumps({"requests": len(samples)}), flush=True)

    connector = aiohttp.TCPConnector(limit=clients)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return samples
