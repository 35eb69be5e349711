"""One search for a case that breaks the property, smallest first once there is one."""

import math
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase

from tests.fuzz.cases import Case, Kind, outcome


def search(
    kind: Kind,
    seen: Callable[[Case, str], None],
    examples: int,
    end: float = math.inf,
    **more: Any,
) -> None:
    """Tries cases of a kind; raises what the smallest broken one raises.

    Args:
      kind: to try.
      seen: function of each case and `accepted`, `refused` or `found`.
      examples: how many.
      end: of `time.monotonic`; cases that would begin later are not tried, but for those by which
        a broken one is made smaller.
      **more: hypothesis' settings, and `seed`.
    """
    seed, broken = more.pop("seed", None), list[Case]()

    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        **more,
    )
    @hypothesis.given(kind.cases)
    def tried(case):
        if time.monotonic() > end and not broken:
            return
        result = "found"
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                result = outcome(kind, case, pathlib.Path(folder))
        finally:
            broken.extend([case] if result == "found" else [])
            seen(case, result)

    (tried if seed is None else hypothesis.seed(seed)(tried))()
