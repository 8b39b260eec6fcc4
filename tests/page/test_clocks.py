"""Clocks in the browser: uncertainty is a band, and no bar moves for it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from llmlat_processor.model import Alternative, ExplainedTrace
from llmlat_processor.views.page.markup import NOTHING
from tests.llmlat_processor import clocked
from tests.page.conftest import Open

ENGINE = "engine chat"
WHOLE_MS = 2_000


def row(page: Page, name: str = ENGINE) -> Locator:
    return page.locator(".row.op").filter(has=page.locator(f".name:text-is('{name}')"))


def places(page: Page, kind: str) -> list[tuple[float, float]]:
    """Left edge and width of what is drawn in the engine's row, in milliseconds of the trace."""
    lane = row(page).locator(".lane").bounding_box()
    assert lane is not None
    boxes = [one.bounding_box() for one in row(page).locator(f".lane {kind}").all()]
    scale = WHOLE_MS / lane["width"]
    return [
        (round((box["x"] - lane["x"]) * scale), round(box["width"] * scale))
        for box in boxes
        if box is not None
    ]


def bounded(low_ms: float, high_ms: float) -> ExplainedTrace:
    known = clocked.clocks({clocked.GPU: clocked.between(low_ms, high_ms)})
    return clocked.adviser(known=known)


#   bar          250 ├────────┤ 790            by durations
#   band      220 ├──────────────┤ 840         6.70 to 6.78 s ahead
def test_the_uncertainty_is_a_band_and_the_bar_is_where_it_was(opened: Open) -> None:
    before = places(opened(clocked.one_clock()), ".bar.e2e")
    page = opened(bounded(6_700, 6_780))
    assert before == places(page, ".bar.e2e") == [(250, 540)]
    ((left, width),) = places(page, ".band")
    assert left == pytest.approx(220, abs=3)
    assert width == pytest.approx(620, abs=5)


def test_the_bar_does_not_follow_the_interval(opened: Open) -> None:
    page = opened(bounded(6_300, 6_400))
    assert places(page, ".bar.e2e") == [(250, 540)]
    ((left, width),) = places(page, ".band")
    assert left == pytest.approx(600, abs=3)
    assert width == pytest.approx(640, abs=5)


def test_a_band_that_reaches_beyond_the_root_is_drawn_up_to_it(opened: Open) -> None:
    page = opened(bounded(2_000, 9_000))
    ((left, width),) = places(page, ".band")
    assert (left, width) == (0, WHOLE_MS)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("low", "high"), [(None, None), (6_700, None), (None, 6_780)])
def test_without_an_interval_there_is_no_band(
    opened: Open, low: float | None, high: float | None
) -> None:
    known = clocked.clocks({clocked.GPU: clocked.between(low, high)})
    page = opened(clocked.adviser(known=known))
    assert page.locator(".band").count() == 0
    assert places(page, ".bar.e2e") == [(250, 540)]


def test_a_band_can_be_heard(opened: Open) -> None:
    page = opened(bounded(6_700, 6_780))
    expect(row(page).locator(".lane")).to_have_attribute(
        "aria-label",
        "on both paths, from 250 ms to 790 ms; "
        "by its clock somewhere from 220 ms to 840 ms, known to 80.3 ms",
    )


def test_the_legend_says_what_a_band_is(opened: Open) -> None:
    words = "where its clock allows it"
    assert words in opened(bounded(6_700, 6_780)).locator(".legend").inner_text()
    assert words not in opened(clocked.one_clock()).locator(".legend").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_band_can_be_told_from_a_bar(opened: Open, scheme: str) -> None:
    page = opened(bounded(6_700, 6_780), color_scheme=scheme)
    style = "one => { const s = getComputedStyle(one); return [s.borderTopStyle, s.opacity]; }"
    assert page.locator(".lane .band").evaluate(style) == ["dashed", "0.8"]
    band, bar = (row(page).locator(f".lane {kind}") for kind in (".band", ".bar.e2e"))
    sizes = [one.bounding_box() for one in (band, bar)]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[0]["height"] > sizes[1]["height"]


# ── The map, the proofs and the other paths ──────────────────────────────────────────────────────


def test_the_clocks_are_a_table(opened: Open) -> None:
    page = opened(clocked.many())
    rows = page.locator(".clocks tbody tr")
    told = [rows.nth(at).locator("th, td").all_inner_texts() for at in range(rows.count())]
    assert [cells[:4] for cells in told] == [
        ["adviser", "laptop", "the root's clock", NOTHING],
        ["vllm", "gpu-1", "not bounded: contradictory", NOTHING],
        ["gateway", "edge-1", "-5 ms .. +12 ms", "17.0 ms"],
        ["gateway", "edge-2", "at most +12.4 ms", NOTHING],
        ["search", "tools-1", "at least -3.00 ms", NOTHING],
        ["orders", "tools-2", "not bounded: no messages", NOTHING],
    ]
    assert told[1][5] == "infeasible_offset, apparent_negative_network"
    assert "nothing is said of 3 clocks beyond these" in page.locator(".clocks").inner_text()


def test_one_clock_has_no_table(opened: Open) -> None:
    assert opened(clocked.one_clock()).locator(".clocks").count() == 0


def test_a_proof_leads_to_its_spans_and_can_be_checked_to_the_nanosecond(opened: Open) -> None:
    page = opened(clocked.adviser(clocked.contradiction()))
    finding = page.locator(".findings > ul > li")
    assert "vllm is at most 6.751 s ahead of adviser" in finding.inner_text()
    finding.get_by_text("In numbers").click()
    sums = finding.locator("tbody tr").evaluate_all(
        """all => all.map(one => {
          const [left, arrived, ...granted] =
            [...one.querySelectorAll('data')].map(each => BigInt(each.value));
          return Number(arrived - left + granted.reduce((a, b) => a + b));
        })"""
    )
    assert sum(sums) == clocked.contradiction().amount_ns
    finding.locator(".proof a").first.click()
    expect(page.locator(".row:target .name")).to_have_text("chat gemma")


def test_another_path_that_the_clocks_allow_is_told_below_the_bar(opened: Open) -> None:
    found = clocked.ambiguous(clocked.adviser(), Alternative(clocked.CHAT, clocked.OTHER))
    told = opened(found).locator(".ambiguous")
    assert told.count() == 2
    words = "ambiguous: the clocks allow retrieval account adviser in place of chat gemma adviser"
    assert told.first.inner_text() == words


def test_both_observers_of_a_first_content_stand_side_by_side(opened: Open) -> None:
    cells = opened(clocked.adviser()).locator(".first-contents tbody tr").locator("th, td")
    assert cells.all_inner_texts() == [
        "chat gemma adviser",
        "engine chat vllm",
        "330 ms",
        "380 ms",
        "50.0 ms",
    ]


@pytest.mark.parametrize("width", [360, 800])
def test_nothing_of_it_makes_a_narrow_window_wider(opened: Open, width: int) -> None:
    page = opened(clocked.many(), viewport={"width": width, "height": 800})
    page.get_by_text("In numbers").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
