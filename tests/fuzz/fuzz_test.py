"""A short, always equal part of what `make fuzz` tries."""

import pytest

from tests.fuzz.cases import outcome
from tests.fuzz.found import FOUND
from tests.fuzz.kinds import KINDS
from tests.fuzz.search import search


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_input(name):
    search(KINDS[name], lambda case, result: None, KINDS[name].examples, derandomize=True)


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name, tmp_path):
    kind, case = FOUND[name]
    outcome(KINDS[kind], case, tmp_path)
