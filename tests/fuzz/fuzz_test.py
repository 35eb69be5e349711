"""A short, always equal part of what `make fuzz` tries."""

import pytest

from tests.fuzz.cases import outcome
from tests.fuzz.found import FOUND
from tests.fuzz.kinds import KINDS
from tests.fuzz.search import search


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_input(name):
    """Of the cases some are accepted: a search that is always refused looks at nothing."""
    results = []
    examples = KINDS[name].examples
    search(KINDS[name], lambda _, result: results.append(result), examples, derandomize=True)
    assert set(results) <= {"accepted", "refused"} and "accepted" in results


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name, tmp_path):
    kind, case = FOUND[name]
    assert outcome(KINDS[kind], case, tmp_path) in ("accepted", "refused")
