"""A short, always equal part of what `make fuzz` tries."""

import pytest

from tests.fuzz.kinds import KINDS
from tests.fuzz.search import search


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_input(name):
    search(KINDS[name], lambda case, result: None, KINDS[name].examples, derandomize=True)
