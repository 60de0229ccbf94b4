"""The viewer in a real browser: nothing that a model wrote is executed, charts are drawn, the keyboard works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hostile_run import write_step

from surefoot.store.journal import Journal

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'surefoot[view]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")

expect = playwright.expect
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def run(make_run: Make) -> Path:
    return make_run()


@pytest.fixture(scope="module")
def address(run: Path) -> Iterator[str]:
    command = [
        sys.executable,
        "-c",
        "from surefoot.cli import main; main()",
        "view",
        str(run),
        "--port",
        "0",
        "--memory",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = process.stdout.readline()
    try:
        assert "http://127.0.0.1:" in said, said + process.stdout.read()
        yield said.split(" at ")[1].split("/ ")[0]
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture
def page(browser: playwright.Browser) -> Iterator[playwright.Page]:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.problems = []
    page.set_default_timeout(10_000)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda line: page.problems.append(line.text) if line.type == "error" else None)
    yield page
    context.close()


def test_a_run_is_looked_at(address: str, run: Path, page: playwright.Page) -> None:
    # Overview: charts are drawn, and a step that is written meanwhile appears by itself.
    page.goto(address)
    page.wait_for_selector("svg polyline.line", state="attached")  # a level line has no height
    assert page.locator("svg polygon.band").count() >= 2
    assert page.locator("#events").inner_text().count("<script>") == 1  # as text
    journal = Journal(run)
    write_step(run, journal, 5)
    journal.close()
    expect(page.locator("#step")).to_have_text("5", timeout=20_000)
    page.wait_for_selector("section:not([hidden]) h2:text('Sandbox outcomes')")
    low, high = page.evaluate("Charts.wilson(0.5, 10)")
    assert (round(low, 4), round(high, 4)) == (0.2366, 0.7634)  # Wilson 1927; Newcombe 1998

    # Rollouts: search while typing, keyboard, a link that says what was asked for.
    page.goto(f"{address}/run/0/rollouts")
    page.keyboard.press("/")
    page.keyboard.type("forty")
    expect(page.locator("#total")).to_have_text("10")
    assert page.url.endswith("text=forty")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.locator("li.marked").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_selector("#sample-0.marked")

    # Group: both samples, colours by choice, the evidence, hostile text as text only.
    assert page.locator("article.sample").count() == 2
    assert "<script>window.hacked" in page.locator("#sample-1").inner_text()
    shade = "getComputedStyle(document.querySelector('#sample-0 .w.p5')).backgroundColor"
    by_logprob = page.evaluate(shade)
    page.get_by_label("advantage").check()
    assert page.evaluate(shade) != by_logprob
    title = page.locator("h1").inner_text()
    page.keyboard.press("p")
    expect(page.locator("h1")).not_to_have_text(title)
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") in ("dark", "light")
    assert not page.problems


def test_hostile_text_never_runs(address: str, page: playwright.Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    pages = (
        "/",
        "/run/0/rollouts",
        "/run/0/group/2?task=sums%2Ftrain%2F2",
        "/run/0/rollouts?text=%22%3E%3Cimg+src%3Dx%3E",
    )
    for place in pages:
        page.goto(address + place)
        page.wait_for_timeout(800)
        assert page.evaluate("window.hacked") is None, place
        assert page.locator("img, .evil, main script, [onload], [onerror]").count() == 0, place
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, place
    assert all(url.startswith(address) for url in asked)
    # Even what slipped through the escaping could not run: the policy of the page forbids it.
    page.evaluate(
        "text => document.body.insertAdjacentHTML('beforeend', text)", "<img src=x onerror='window.hacked=1'>"
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
