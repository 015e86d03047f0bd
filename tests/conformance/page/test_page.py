"""The page in a real browser: filters, links, copying, themes, a phone, print, and hostile names of targets."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import axe_core_python
import numpy as np
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

import normspec
from normspec.conformance.page.contents import Document
from normspec.conformance.page.page import page_of
from normspec.spec import requirements
from normspec.spec.operators import OPERATORS

#: A name that a malicious or careless user might give to a target.
NAME = "<script>document.title='run'</script>&amp;\"'.py:layer_norm"
LINK = "%3Cscript%3Edocument.title%3D'run'%3C%2Fscript%3E%26amp%3B%22'.py%3Alayer_norm"


def layer_norm(x, gamma, beta, *, eps, axes):
    """The epsilon is added to the standard deviation."""
    d = x - x.mean(axes, keepdims=True)
    y = d / (np.sqrt(np.square(d).mean(axes, keepdims=True)) + x.dtype.type(eps))
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> dict[str, Any]:
    """The JSON of a report on two targets; the wrong one has a name that is markup."""
    found = normspec.check(
        [f"{__file__}:layer_norm", "numpy"], framework="numpy", op="layer_norm", dtypes=["float32", "float64"],
        profile="quick", only=["CM-P2", "LN-F1", "LN-F3", "LN-F5", "LN-R1", "LN-L1"], forward_only=True,
    )  # fmt: skip
    content = json.loads(found.to_json())
    own = content["targets"][0]["name"]
    content = json.loads(json.dumps(content).replace(json.dumps(own)[1:-1], json.dumps(NAME)[1:-1]))
    script = tmp_path_factory.mktemp("scripts") / "script.py"
    script.write_text('"""It violates LN-F3 of normspec, edition 2."""\nprint("<b>")\n')
    (cause,) = content["causes"]
    about = {"target": NAME, "op": "layer_norm", "fault": cause["faults"][0], "requirement": "LN-F3"}
    content["scripts"] = [{**about, "binding": NAME, "dtype": "float32", "file": str(script), "why_not": ""}]
    return content


@pytest.fixture(scope="module")
def file(report, tmp_path_factory) -> Path:
    """The page of it."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page_of([Document("a.json", report)]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The Chromium of the system."""
    from ...conftest import CHROMIUM

    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, file) -> Iterator[Page]:
    """The page, opened; at the end it must have logged no complaint and made no network request."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    one, said, asked = context.new_page(), list[str](), list[str]()

    def told(message: ConsoleMessage) -> None:
        said.append(message.text)

    one.on("console", told)
    one.on("pageerror", lambda error: said.append(str(error)))
    one.on("request", lambda request: asked.append(request.url))
    opened(one, file)
    yield one
    assert said == []
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
    context.close()


def opened(page: Page, file: Path, link: str = "") -> None:
    """Open the page, and wait until its script has drawn it."""
    page.goto(f"file://{file}{link}")
    page.wait_for_selector("html[data-drawn]", state="attached")


def rows(page: Page) -> list[str]:
    """The ids of the requirements that are shown."""
    return page.locator(".matrix tbody tr:visible .id").all_inner_texts()


def test_what_a_target_is_called_is_text(page):
    """No script of it runs, and its name is shown as it is."""
    assert page.title() != "run" and NAME in page.title()
    assert NAME in page.locator(".targets").inner_text()
    assert page.locator("caption").first.inner_text() == f"layer_norm · {NAME}"
    assert page.locator("script").count() == 2


def test_filters(page):
    """Target, operator, level, verdict and text narrow the rows, together, and are cleared at once."""
    whole = rows(page)
    assert len(whole) == 12 and page.inner_text("#count") == "12 of 12 requirements"
    page.select_option("#verdict", label="fail")
    failing = rows(page)
    assert "LN-F3" in failing and "LN-F5" not in failing and len(failing) < 7
    page.select_option("#target", label="numpy")
    assert rows(page) == [] and page.inner_text("#count") == "0 of 12 requirements"
    page.select_option("#verdict", label="all")
    assert len(rows(page)) == 6
    page.select_option("#level", label="SHOULD")
    assert rows(page) == ["LN-R1"]
    page.click("text=Clear")
    expect(page.locator("#count")).to_have_text(re.compile("^12 of"))
    page.fill("#text", "eps ROOT")
    assert set(rows(page)) == {"LN-F3"}
    page.select_option("#operator", label="layer_norm")
    assert set(rows(page)) == {"LN-F3"}


def test_a_cell_says_what_stands_behind_it(page):
    """The sentence, the cases, the margin, the plot by kind of data, the smallest case, and the command."""
    page.click("button[aria-label^='LN-F3 float32: fail']")
    page.wait_for_selector("#detail[open]")  # a link is followed once the click is done with
    said = page.inner_text("#detail")
    for words in ("LN-F3", "The epsilon is added inside the root", "judged", "times the envelope", "The smallest case"):
        assert words in said
    assert "Its cause: Divides by sqrt(var) + eps. (ln-eps-on-std)" in said
    assert "normspec check" in said and "--only LN-F3" in said
    assert page.locator("#detail svg").count() >= 1
    assert page.locator("#detail a:has-text('in the specification')").get_attribute("href").endswith("#LN-F3")
    page.keyboard.press("Escape")
    page.wait_for_selector("#detail", state="hidden")
    page.wait_for_function("(document.activeElement.getAttribute('aria-label') || '').startsWith('LN-F3 float32')")
    page.click("button[aria-label^='LN-F1 float64: pass'] >> nth=0")
    page.wait_for_selector("#detail[open]")
    assert (
        "The worst error by kind of data" in page.inner_text("#detail") and page.locator("#detail circle").count() > 1
    )


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        (f"#{LINK}/LN-F3/float32", "LN-F3 eps inside the root"),
        ("#numpy/LN-F1/float64", "LN-F1"),
        ("#numpy/layer_norm/CM-P2/float32", "CM-P2"),
    ],
)
def test_deep_links(page, file, link, shown):
    """A link opens its cell, in the address bar too; the page's own links are these; others open nothing."""
    opened(page, file, link)
    assert page.inner_text("#detail-title").startswith(shown)
    assert page.locator(".cell[aria-current]").count() == 1
    assert page.locator("#detail a:has-text('link to this')").get_attribute("href") == link
    page.evaluate("location.hash = '#nowhere/LN-F3/float32'")
    page.wait_for_selector("#detail", state="hidden")


def test_a_link_shows_what_a_filter_hides(page):
    """Filters are removed so that the place a link names is visible."""
    page.fill("#text", "no such words")
    page.evaluate("location.hash = '#numpy/LN-F5/float32'")
    page.wait_for_selector("#detail[open]")
    assert page.locator(".cell[aria-current]").is_visible()


def test_copying(page):
    """A script and a command get into the clipboard as they are."""
    page.locator(".cause .copy").first.click()
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith('"""It violates LN-F3')
    assert "<b>" in page.evaluate("navigator.clipboard.readText()")
    page.locator(".cause .copy").last.click()
    expect(page.locator(".cause .copy").nth(1)).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("normspec check")


def test_the_keyboard_goes_everywhere(page):
    """One tab stop a table; arrows move in it, Enter opens, Escape closes and comes back; first is a skip."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the results"
    assert page.locator(".cell[tabindex='0']").count() == 2
    page.locator(".cell[tabindex='0']").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail[open]")
    assert page.inner_text("#detail-title").startswith("LN-F1")
    page.keyboard.press("Escape")
    page.wait_for_function("(document.activeElement.getAttribute('aria-label') || '').startsWith('LN-F1 float64')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nobody_is_shut_out(browser, file, scheme, width):
    """axe-core finds nothing serious, in both themes, on a desk and on a phone, with and without an open cell."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    page = context.new_page()
    script = Path(axe_core_python.__file__).parent / "axe.min.js"
    for link in ("", f"#{LINK}/LN-F3/float32"):
        page.goto("about:blank")
        opened(page, file, link)
        page.evaluate(script.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
    context.close()


def test_print(page):
    """On paper there are the causes and all tables, and nothing to press."""
    page.emulate_media(media="print")
    assert page.locator(".cause").is_visible() and page.locator(".matrix").last.is_visible()
    assert not page.locator("#filters").is_visible() and not page.locator(".copy").first.is_visible()


def seconds_of(page: Page) -> Callable[[], float]:
    """The time that the page itself has taken so far, independent of the machine's other work."""
    clock = page.context.new_cdp_session(page)
    clock.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds() -> float:
        metrics = clock.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    return seconds


def test_as_many_results_as_three_frameworks_have_are_one_small_page(browser, report, tmp_path):
    """As many results as three frameworks have at `standard`: less than 3 MB, and drawn within a second."""
    one = next(one for one in report["results"] if one["target"] == "numpy" and one["requirement"] == "LN-F1")
    ids = list(requirements())
    kinds = ("normal", "offset", "constant", "wide", "tiny", "huge", "outlier", "sparse", "witness", "signs")
    results = [
        {
            **one, "target": target, "op": op, "binding": f"{target}.{op}.{binding}", "requirement": name,
            "dtype": dtype, "cases": 40 + place, "ratio": (1 + place * 7 % 997) / 1000,
            "kinds": {kind: (1 + (place * 31 + 17 * number) % 991) / 1000 for number, kind in enumerate(kinds)},
        }
        for target in ("torch", "tensorflow", "jax")
        for op in OPERATORS
        for binding in range(3)
        for dtype in ("float16", "bfloat16", "float32", "float64")
        for place, name in enumerate(ids[:60])
    ]  # fmt: skip
    assert len(results) > 20_000
    targets = [{**report["targets"][1], "name": name} for name in ("torch", "tensorflow", "jax")]
    content = {**report, "results": results, "targets": targets, "causes": [], "scripts": []}
    path = tmp_path / "page.html"
    path.write_text(page_of([Document("a.json", content)]), encoding="utf-8")
    assert path.stat().st_size < 3e6
    context = browser.new_context()
    page = context.new_page()
    seconds = seconds_of(page)
    page.goto(f"file://{path}")
    page.wait_for_selector("html[data-ready]", state="attached")
    assert seconds() < 1
    page.wait_for_selector("html[data-drawn]", state="attached")
    before = seconds()
    page.fill("#text", "LN-F3")
    assert page.inner_text("#count").startswith("30 of")
    assert seconds() - before < 1
    context.close()


@pytest.fixture(scope="module")
def three_frameworks(tmp_path_factory) -> Path:
    """The page of a run over torch, jax and tensorflow, as three_frameworks.py stored its report."""
    from .three_frameworks import STORED  # here: this file is a target, which is imported on its own

    path = tmp_path_factory.mktemp("page") / "three.html"
    report = json.loads(gzip.decompress(STORED.read_bytes()))
    path.write_text(page_of([Document("three.json", report)]), encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_run_of_three_frameworks(browser, three_frameworks, width, scheme):
    """It can be used within a second; a known deviation has a link; plots can be read on a phone."""
    assert three_frameworks.stat().st_size < 3e6
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = context.new_page()
    seconds = seconds_of(page)
    page.goto(f"file://{three_frameworks}")
    page.wait_for_selector("html[data-ready]", state="attached")
    assert seconds() < 1
    assert page.locator(".targets tbody th").count() == 3
    page.wait_for_selector("html[data-drawn]", state="attached")
    page.select_option("#target", label="torch")
    page.select_option("#verdict", label="deviates")
    before = seconds()
    page.click("button[aria-label^='LN-G13 float32: deviates']")
    page.wait_for_selector("#detail[open]")
    assert seconds() - before < 1
    links = page.locator("#detail section a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert links and all(re.fullmatch(r"https://\S+", link) for link in links)
    words = page.locator("#detail figure .plot text")
    assert min(words.evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")) > 10
    context.close()
