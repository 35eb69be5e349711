"""One kind of input, tried with new seeds until its time is over, within limits of memory."""

import contextlib
import json
import resource
import signal
import sys
import time
import traceback

from absl import logging

from tests.fuzz.cases import MOST_BYTES, MOST_SECONDS, Case
from tests.fuzz.kinds import KINDS
from tests.fuzz.search import search

EXAMPLES = 300  # Of one search; the first are the simplest.
SECONDS_BETWEEN_LINES = 30.0


class Counts:
    """What was tried, and what came of it.

    Args:
      name: of the kind.
      path: of the file that the counts go to; beside it is the case that is tried.
    """

    def __init__(self, name: str, path: str) -> None:
        self.name, self.path = name, path
        self.numbers = dict.fromkeys(("inputs", "refused", "accepted", "finds"), 0)
        self.said, self.last, self.places = time.monotonic(), Case({}), set[str]()

    def see(self, case: Case, result: str) -> None:
        """Counts a case; a broken one counts when it is found, not while it is made smaller."""
        signal.alarm(2 * MOST_SECONDS)  # For the next case, which began with this one's end.
        self.last = case
        self.numbers["inputs"] += 1
        if result in self.numbers:
            self.numbers[result] += 1
        if time.monotonic() - self.said > SECONDS_BETWEEN_LINES:
            self.say()

    def find(self, error: Exception) -> None:
        """Prints a broken case, once for each place in the code."""
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "adapter_bert_tf/" in f.filename or "fuzz" in f.filename]
        place = f"{type(error).__name__} {ours[-1].filename}:{ours[-1].lineno}" if ours else ""
        if place not in self.places:
            self.places.add(place)
            self.numbers["finds"] += 1
            said = f"{type(error).__name__}: {str(error)[:600]}"
            stack = "".join(traceback.format_list(frames[-5:]))
            print(f"FIND {self.name}: {said}\n{stack}{str(self.last)[:6000]}\n", flush=True)

    def say(self) -> None:
        """Prints the counts so far, and keeps them."""
        self.said = time.monotonic()
        print(f"{self.name}: {self.numbers}", flush=True)
        with open(self.path, "w") as file:
            json.dump(self.numbers, file)


def limit() -> None:
    """From here on the process may take so much more memory, and a case so much time."""
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 2 * MOST_BYTES, -1))
    signal.signal(signal.SIGALRM, _too_long)


def _too_long(number, frame):
    raise AssertionError(f"it took more than {2 * MOST_SECONDS} s")


def main(name: str, seconds: float, seed: int, path: str) -> None:
    """Searches again and again; a search ends with its first find, the next has a new seed."""
    logging.set_verbosity(logging.WARNING)
    counts, end = Counts(name, path), time.monotonic() + seconds
    with contextlib.suppress(Exception):  # What is loaded at first is no case's cost.
        search(KINDS[name], lambda case, result: None, 1)
    limit()
    while time.monotonic() < end:
        try:
            search(KINDS[name], counts.see, EXAMPLES, end, seed=seed)
        except Exception as error:
            counts.find(error)
        seed += 1
    counts.say()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
