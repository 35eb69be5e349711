"""One search for a case that breaks the property, smallest first once there is one."""

import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase

from tests.fuzz.cases import Case, Kind, outcome


def search(kind: Kind, seen: Callable[[Case, str], None], examples: int, **more: Any) -> None:
    """Tries cases of a kind; raises what the smallest broken one raises.

    Args:
      kind: to try.
      seen: function of each case and `accepted`, `refused` or `found`.
      examples: how many.
      **more: hypothesis' settings, and `seed`.
    """
    seed = more.pop("seed", None)

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
        result = "found"
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                result = outcome(kind, case, pathlib.Path(folder))
        finally:
            seen(case, result)

    (tried if seed is None else hypothesis.seed(seed)(tried))()
