"""The page by keyboard and by ear, in every way of showing it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from llmlat_processor.commands.what_if import parse
from llmlat_processor.model import ExplainedTrace
from llmlat_processor.pipeline import process
from tests.llmlat_processor.adviser import adviser_spans, resource, span
from tests.llmlat_processor.views.page.read_back import tags_of
from tests.llmlat_processor.views.page.test_page import HOSTILE, hostile_trace
from tests.page.conftest import Open


def focused(page: Page) -> str:
    """The name in the row that has the focus, without its marks."""
    name = page.evaluate("document.activeElement.querySelector('.name, .swatch').textContent")
    return str(name)


def rows(page: Page) -> int:
    return page.locator(".row:visible").count()


@pytest.fixture
def shown(opened: Open) -> Page:
    return opened(process(adviser_spans()))


def test_arrow_keys_move_through_the_tree(shown: Page) -> None:
    shown.locator('.row[tabindex="0"]').focus()
    seen = [focused(shown)]
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "End", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        shown.keyboard.press(key)
        seen.append(focused(shown))
    assert seen == [
        "invoke_agent adviser",
        "unobserved",
        "retrieval orders",
        "unobserved",
        "finalize",
        "chat gemma",
        "chat gemma",
        "invoke_agent adviser",
    ]
    assert shown.locator('.row[tabindex="0"]').count() == 1


def test_a_row_closes_and_opens_by_keys(shown: Page) -> None:
    root = shown.locator(".row").first
    all_rows = rows(shown)
    root.press("ArrowLeft")
    assert (root.get_attribute("aria-expanded"), rows(shown)) == ("false", 1)
    root.press("ArrowRight")
    assert (root.get_attribute("aria-expanded"), rows(shown)) == ("true", all_rows)
    root.press("ArrowRight")
    assert focused(shown) == "unobserved"


def test_enter_shows_what_stands_beside_a_row(shown: Page) -> None:
    row = shown.locator(".row.op").nth(2)
    row.press("Enter")
    assert "known to be spare" in row.inner_text()
    assert row.get_attribute("aria-selected") == "true"
    row.press("Enter")
    assert "known to be spare" not in row.inner_text()


def test_the_filter_keeps_what_is_above_a_match(shown: Page) -> None:
    shown.get_by_role("searchbox").fill("DECODE")
    shown.get_by_text("2 of 24 rows").wait_for()
    names = shown.locator(".row:visible .name").all_inner_texts()
    assert names == ["invoke_agent adviser", "chat gemma", "engine chat", "chat gemma"]
    shown.get_by_role("searchbox").fill("")
    shown.get_by_role("checkbox").check()
    assert shown.locator(".row:visible", has_text="retrieval account").count() == 0


def test_a_filter_without_a_match_can_be_taken_back(shown: Page) -> None:
    shown.get_by_role("searchbox").fill("no such row")
    shown.get_by_text("0 of 24 rows").wait_for()
    assert rows(shown) == 0
    shown.get_by_role("searchbox").fill("")
    assert rows(shown) == 24
    shown.locator('.row[tabindex="0"]').press("End")
    assert focused(shown) == "finalize"


def test_the_row_that_has_the_focus_is_not_behind_the_axis(opened: Open) -> None:
    page = opened(large(200), viewport={"width": 1280, "height": 400})
    row = page.locator(".row").first
    row.press("End")
    for _ in range(30):
        page.keyboard.press("ArrowUp")
    top = page.evaluate("document.activeElement.getBoundingClientRect().top")
    assert top >= page.evaluate("document.querySelector('.axis').getBoundingClientRect().bottom")


def test_a_link_opens_all_above_its_row(opened: Open) -> None:
    first, second = (
        process(adviser_spans()),
        process([span(1, 0, "other", 0, 5, trace_id=b"2" * 16)]),
    )
    page = opened(second, first, at="#span-000000000000000f")
    assert focused(page) == "engine chat"
    assert page.locator("details.trace").nth(1).get_attribute("open") is not None


def test_the_skip_link_is_first_and_leads_to_the_trace(shown: Page) -> None:
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.textContent") == "Skip to the trace"
    shown.keyboard.press("Enter")
    assert shown.url.endswith("#traces")


def test_everything_that_can_be_used_has_a_name(shown: Page) -> None:
    heard = shown.locator("body").aria_snapshot()
    nameless = re.findall(
        r"^\s*- (?:button|slider|searchbox|checkbox|link)(?:\s*:.*)?$", heard, re.M
    )
    assert nameless == []
    assert (
        'slider "decode: what if it took another time, in per cent of what was observed"' in heard
    )
    assert 'listitem "decode adviser, 550 ms, 28 %"' in heard
    assert 'treegrid "Operations and their phases"' in heard
    assert heard.count('slider "') == 7


def test_every_focus_can_be_seen(shown: Page) -> None:
    seen = 0
    for _ in range(14):
        shown.keyboard.press("Tab")
        style = shown.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        seen += style != "none"
    assert seen == 14


def test_the_theme_changes_without_storage(opened: Open) -> None:
    page = opened(process(adviser_spans()), color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark colours").press("Enter")
    assert page.evaluate(ground) == "rgb(15, 18, 22)"
    page.get_by_role("button", name="Light colours").press("Enter")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


WAYS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced colours": {"forced_colors": "active"},
    "narrow": {"viewport": {"width": 360, "height": 640}},
    "no script": {"java_script_enabled": False},
    "still": {"reduced_motion": "reduce"},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_showing_it_has_all_rows_and_no_scroll_sideways(
    opened: Open, tmp_path: Path, way: str
) -> None:
    page = opened(process(adviser_spans()), **WAYS[way])
    assert rows(page) == 24
    assert page.get_by_text("The path to the end").first.is_visible()
    width = (WAYS[way].get("viewport") or {"width": 1280})["width"]
    box = page.locator("main").bounding_box()
    assert box is not None
    assert box["width"] <= width
    assert page.locator("body").bounding_box()["width"] <= width  # type: ignore[index]
    assert len(page.screenshot(full_page=True, path=tmp_path / f"{way}.png")) > 10_000


@pytest.mark.parametrize("width", [1280, 400])
def test_endless_names_make_no_page_scroll_sideways(opened: Open, width: int) -> None:
    endless = resource("s" * 5_000, "host")
    spans = [span(at, int(at > 1), "n" * 5_000, 0, 50 - at, endless) for at in range(1, 5)]
    page = opened(process(spans), process(spans), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    names = page.locator("details[open] .row .name")
    assert names.evaluate_all("(all) => Math.min(...all.map((one) => one.clientWidth))") > 40


def test_a_name_that_is_empty_can_be_seen_and_followed(opened: Open) -> None:
    page = opened(process([span(1, 0, "", 0, 50, resource("", "host"))]))
    heard = page.locator("body").aria_snapshot()
    assert 'link "(empty)"' in heard
    assert (
        page.locator(".row .name").evaluate("(name) => getComputedStyle(name, '::before').content")
        == '"(empty)"'
    )


def test_a_what_if_of_a_closed_trace_is_printed(opened: Open) -> None:
    both = [process(adviser_spans()), process(adviser_spans())]
    page = opened(*both, suppositions=[parse("decode=0.75")])
    said = "[...document.querySelectorAll('.said')].map((one) => one.textContent.slice(0, 14))"
    assert page.evaluate(said) == ["decode at 75 %", ""]
    # A browser draws what stands there when all have heard of it, and waits for nothing.
    printed = page.evaluate(f"() => {{ dispatchEvent(new Event('beforeprint')); return {said}; }}")
    assert printed == ["decode at 75 %", "decode at 75 %"]


def test_print_is_light_and_opens_everything(opened: Open) -> None:
    page = opened(process(adviser_spans()), process(adviser_spans()[:4]), color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.get_by_role("button").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.trace[open]").count() == 1
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_hostile_names_run_nothing_and_are_read_as_they_are(opened: Open) -> None:
    page = opened(hostile_trace())  # a script that ran would be an error or a message
    assert page.locator("img").count() == 0
    assert page.locator(".row .name", has_text=HOSTILE[0]).count() > 0
    assert "img" not in tags_of(page.content())


def large(size: int) -> ExplainedTrace:
    """An agent with many short steps, each with a step of its own."""
    spans = [span(1, 0, "root", 0, 10 * size)]
    for at in range(2, size + 1):
        parent = 1 if at % 5 == 0 or at < 6 else at - at % 5
        spans.append(span(at, parent, f"step {at}", 10 * at - 20 + at % 5, 10 * at - 12))
    return process(spans)


def test_a_browser_watches_few_things_of_many_rows(opened: Open) -> None:
    """What it lays out when it comes near the window, it looks at in every frame."""
    page = opened(large(2_000))
    script = """
    (all) => all.filter((one) => getComputedStyle(one).contentVisibility === "auto").length
    """
    assert page.locator(".row").count() > 2_000
    assert 0 < page.locator("body *").evaluate_all(script) < 100


def test_a_long_waterfall_is_as_high_as_its_rows(opened: Open) -> None:
    """Before anybody has looked at them, and after a filter."""
    page = opened(large(2_000))
    height = "document.querySelector('.rows').offsetHeight"
    axis = page.evaluate("document.querySelector('.axis').offsetHeight")
    for words, count in (("", page.locator(".row").count()), ("step 77", None)):
        page.get_by_role("searchbox").fill(words)
        seen = count or page.locator(".row:not([hidden])").locator("visible=true").count()
        assert page.evaluate(height) == pytest.approx(25 * seen + axis, abs=5)


def test_five_thousand_spans_open_and_are_moved_through(opened: Open) -> None:
    page = opened(large(5_000))
    assert page.locator(".row.op").count() == 5_000
    page.locator(".row").first.press("End")
    assert "step" in focused(page)
    page.get_by_role("button", name="Collapse all").click()
    assert 0 < rows(page) < 1_100
    page.get_by_role("button", name="Expand all").click()
    page.get_by_role("searchbox").fill("step 4321")
    page.get_by_text("rows").first.wait_for()
    assert 0 < rows(page) < 10
