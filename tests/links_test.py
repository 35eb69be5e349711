"""Links of the pages that are no part of the site, whose own `make docs` checks."""

import re

import pytest

from tests.runs import ROOT

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def anchors(page):
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page = ROOT / name
    links = re.findall(r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)", page.read_text())
    for path, anchor in links:
        target = ROOT / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), (path, anchor)
