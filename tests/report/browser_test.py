"""Pages in a headless Chromium: no word on the console, no request, nothing wider than a phone.

`make test-browser` runs these. Screenshots go to `build/screenshots`, for eyes.
"""

import os
import pathlib
import shutil

import pytest

from adapter_bert_tf import report
from tests.report import folders
from tests.report.page_test import RUNS
from tests.runs import ROOT

pytestmark = pytest.mark.browser
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
SHOTS = ROOT / "build" / "screenshots"


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    SHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


def scores_run(folder):
    folders.scores(folders.write(folder))
    return folder


def labels_run(folder):
    folders.sets(folders.write(folder))
    return folder


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Dict from name to the path of a page."""
    above = tmp_path_factory.mktemp("pages")
    makers = {**RUNS, "scores": scores_run, "labels": labels_run}
    return {
        name: pathlib.Path(report.write(str(make(above / name)))) for name, make in makers.items()
    }


def opened(browser, path, size="phone", scheme="light"):
    """A page in a context of its own, and what it did that it must not."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
    )
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", lambda request: wrong.append(f"request: {request.url[:200]}"))
    page.goto(path.as_uri())
    page.wait_for_load_state("networkidle")
    asked = [f"request: {path.as_uri()}", "request: data:"]
    return page, [said for said in wrong if not said.startswith(tuple(asked))]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*RUNS, "scores", "labels"])
def test_a_page_opens_in_silence_and_fits(name, size, scheme, browser, pages):
    page, wrong = opened(browser, pages[name], size, scheme)
    page.screenshot(path=SHOTS / f"{name}-{size}-{scheme}.png", full_page=True)
    assert not wrong
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.title() != "taken" and page.evaluate("document.scripts.length") == 0
    for summary in page.query_selector_all("summary"):
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.context.close()


def test_a_console_error_and_a_request_would_be_seen(browser, tmp_path):
    """What the test above looks for is found where it is."""
    (tmp_path / "bad.html").write_text(
        "<!DOCTYPE html><script>console.error('seen'); missing()</script>"
        "<img src='http://localhost:9/x.png'>"
    )
    _, wrong = opened(browser, tmp_path / "bad.html")
    assert any("seen" in said for said in wrong) and any("error: " in said for said in wrong)
    assert "request: http://localhost:9/x.png" in wrong


CONTRAST = """() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[0-9.]+/g).slice(0, 3).map((x) => x / 255)
      .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const inks = new Set();
  for (const element of document.querySelectorAll("p, td, th, dt, dd, h1, h2, a, figcaption")) {
    inks.add(getComputedStyle(element).color);
  }
  for (const text of document.querySelectorAll("svg text")) inks.add(getComputedStyle(text).fill);
  for (const line of document.querySelectorAll("svg [style*='--series']")) {
    const style = getComputedStyle(line);
    inks.add(style.stroke === "none" ? style.fill : style.stroke);
  }
  return [...inks].map((ink) => {
    const [a, b] = [light(ink), paper].sort((x, y) => y - x);
    return [ink, (a + 0.05) / (b + 0.05)];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_and_lines_stand_out_from_the_paper(scheme, browser, pages):
    page, _ = opened(browser, pages["several"], "desktop", scheme)
    found = dict(page.evaluate(CONTRAST))
    on_cells = ("rgb(0, 0, 0)", "rgb(255, 255, 255)")  # The numbers of a confusion matrix.
    low = {ink: ratio for ink, ratio in found.items() if ratio < 4.5 and ink not in on_cells}
    assert len(found) > 6 and not low
    page.context.close()
