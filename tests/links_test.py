"""Links of the pages outside the site, whose own `make docs` checks, and files that pages name."""

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


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("docs/*.md")), *map(ROOT.joinpath, PAGES[:2])], ids=lambda p: p.name
)
def test_files_that_a_page_names_exist(page):
    named = re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:py|sh|yaml|ipynb))`", page.read_text())
    missing = [
        path
        for path in named
        if not (ROOT / path).exists() and not (ROOT / "adapter_bert_tf" / path).exists()
    ]
    assert not missing
