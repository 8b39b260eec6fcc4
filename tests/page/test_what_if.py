"""What-ifs in the browser: the figures are Python's, to the nanosecond."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import find, settings
from hypothesis import strategies as st
from playwright.sync_api import Page

from bench.trees import deep
from llmlat_processor.model import ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.schedule import NOBODY, Operation, Schedule
from llmlat_processor.stages.critical_path.schedules import schedules
from llmlat_processor.stages.critical_path.what_if import Change, reschedule, what_if
from llmlat_processor.views.page.phases import schedule_json
from llmlat_processor.views.wording import duration
from llmlat_semconv.phases import Phase
from tests.cases.case_spans import spans_of
from tests.llmlat_processor.adviser import adviser_spans
from tests.llmlat_processor.views.page.case_traces import case_traces
from tests.page.conftest import Open
from tests.properties.traces import call_traces, damaged_traces, linked_traces, plain_traces

FACTORS = [step / 100 for step in range(0, 201, 5)]

ASK = """
([asked, factors]) => asked.map(([written, labels]) => {
  const schedule = readSchedule(JSON.parse(written));
  return labels.map((label) => factors.map((factor) => {
    const found = reschedule(schedule, label, factor);
    return [found.saves, found.savesLow, found.savesHigh, found.duration].map(String);
  }));
})
"""


def python(schedule: Schedule, label: str, factor: float) -> list[str]:
    change = Change(label, None, Fraction(factor), None)
    return [str(amount) for amount in astuple(reschedule(schedule, change))]


def assert_same(page: Page, found: Iterable[Schedule], factors: list[float] | None = None) -> None:
    """Every phase that a schedule holds and every factor, in the browser and in Python."""
    factors = factors or FACTORS
    asked = [(schedule, _labels(schedule)) for schedule in found]
    written = [[schedule_json(schedule), labels] for schedule, labels in asked]
    answers = page.evaluate(ASK, [written, factors])
    for (schedule, labels), answer in zip(asked, answers, strict=True):
        for label, row in zip(labels, answer, strict=True):
            expected = [python(schedule, label, factor) for factor in factors]
            assert row == expected, (label, schedule_json(schedule))


def _labels(schedule: Schedule) -> list[str]:
    """The phases that it holds; one that it does not where there are none."""
    held = {label for operation in schedule.operations for label in operation.pieces}
    return sorted(held) or [Phase.QUEUE.value]


@pytest.fixture
def shown(opened: Open) -> Page:
    return opened(process(adviser_spans()))


def test_every_case_file_has_the_same_what_ifs_in_the_browser(shown: Page) -> None:
    traces = [process(spans_of(one.case), one.assumptions) for one in case_traces()]
    found = [schedule for one in traces for schedule in schedules(one.aligned).values()]
    assert len(found) > 80
    assert_same(shown, found)


@pytest.mark.parametrize(
    "traces",
    [plain_traces(), linked_traces(), call_traces(), damaged_traces()],
    ids=["plain", "linked", "calls", "damaged"],
)
def test_any_trace_has_the_same_what_ifs_in_the_browser(
    shown: Page, traces: st.SearchStrategy[Any]
) -> None:
    found: list[Schedule] = []

    def collect(case: Any) -> bool:
        found.extend(schedules(process(spans_of(case)).aligned).values())
        return False

    look = settings(max_examples=150, deadline=None, derandomize=True, database=None)
    with pytest.raises(Exception, match="No examples"):
        find(traces, collect, settings=look)
    assert len(found) >= 100
    assert_same(shown, found, [0, 0.05, 0.35, 0.5, 0.95, 1, 1.15, 2])


def test_amounts_that_a_double_cannot_hold_stay_exact(shown: Page) -> None:
    large = 2**60 + 1
    one = Operation(
        b"a", 0, large, large, large, 0, (), (), (), NOBODY, {"queue": ((3, large - 4),)}
    )
    assert_same(shown, [Schedule((one,))])


def test_halves_are_rounded_to_the_even_one_on_both_sides(shown: Page) -> None:
    sizes = (1, 2, 3, 5, 7, 10, 25, 50, 99)
    found = [
        Schedule((Operation(b"a", 0, n, n, n, 0, (), (), (), NOBODY, {"queue": ((0, n),)}),))
        for n in sizes
    ]
    assert_same(shown, found, [*FACTORS, 0.1, 0.3, 1 / 3, 5e-324])


def test_a_trace_of_fifty_thousand_levels_needs_no_recursion(shown: Page) -> None:
    (schedule,) = schedules(deep(50_000)).values()
    assert_same(shown, [schedule], [0.5])


def test_figures_are_written_as_python_writes_them(shown: Page) -> None:
    amounts = [0, 1, 999, 1_005, 2_500, 10_050, 99_950, 999_500, 1_015_000, 100_500_000]
    amounts += [125 * 10**n for n in range(12)] + [10**n + 5 for n in range(15)]
    amounts += [-amount for amount in amounts]
    script = "(amounts) => amounts.map((amount) => duration(BigInt(amount)))"
    assert shown.evaluate(script, amounts) == [duration(amount) for amount in amounts]


# ── The control ──────────────────────────────────────────────────────────────────────────────────


def control(page: Page, label: str) -> Any:
    return page.get_by_role("slider", name=f"{label}: what if")


def told(page: Page) -> Mapping[str, int]:
    """The figures that stand in the result."""
    script = "(all) => all.map((one) => [one.dataset.answer, one.value])"
    found = page.locator(".said data").evaluate_all(script)
    return {key: int(value) for key, value in found}


def expected(explained: ExplainedTrace, phase: Phase, factor: float) -> dict[str, int]:
    root = explained.paths.roots[0].root
    answer = what_if(explained.aligned, root, phase=phase, factor=factor)
    figures = {"duration_ns": answer.duration_ns, "saves_ns": answer.saves_ns}
    if answer.saves_low_ns != answer.saves_high_ns:
        figures |= {"saves_low_ns": answer.saves_low_ns, "saves_high_ns": answer.saves_high_ns}
    return figures


@pytest.mark.parametrize(
    ("keys", "factor"),
    [(["ArrowLeft"] * 6, 0.7), (["Home"], 0), (["End"], 2), (["ArrowRight", "ArrowUp"], 1.1)],
    ids=["left", "home", "end", "right"],
)
def test_a_control_moved_by_keys_says_what_python_says(
    opened: Open, keys: list[str], factor: float
) -> None:
    explained = process(adviser_spans())
    page = opened(explained)
    slider = control(page, "decode")
    slider.focus()
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_function("document.querySelector('.said data') !== null")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert told(page) == expected(explained, Phase.DECODE, factor)
    said = page.locator(".said").inner_text()
    assert said.startswith(f"decode at {round(factor * 100)} %: ")
    assert duration(told(page)["duration_ns"]) in said
    words = slider.get_attribute("aria-valuetext") or ""
    amount = told(page)["saves_ns"]
    change = f"saves {duration(amount)}" if amount >= 0 else f"costs {duration(-amount)}"
    then = duration(told(page)["duration_ns"])
    assert words == f"decode at {round(factor * 100)} percent: {then}, {change}"


def test_one_change_at_a_time_and_a_way_back(opened: Open) -> None:
    explained = process(adviser_spans())
    page = opened(explained)
    control(page, "decode").press("Home")
    control(page, "queue").press("ArrowLeft")
    page.wait_for_function("document.querySelector('.said').textContent.startsWith('queue')")
    assert control(page, "decode").input_value() == "100"
    assert control(page, "queue").input_value() == "95"
    assert told(page) == expected(explained, Phase.QUEUE, 0.95)
    page.get_by_role("button", name="Reset").press("Enter")
    assert control(page, "queue").input_value() == "100"
    assert told(page) == {}
    assert page.locator(".said").inner_text() == "as observed: 2.00 s"


def test_the_answer_is_announced(shown: Page) -> None:
    said = shown.locator(".said")
    assert said.get_attribute("aria-live") == "polite"
    control(shown, "queue").press("ArrowLeft")
    shown.wait_for_function("document.querySelector('.said data') !== null")
    assert said.get_attribute("aria-live") == "off"  # the control itself says it
    shown.get_by_role("button", name="Reset").press("Enter")
    assert said.get_attribute("aria-live") == "polite"
    described = control(shown, "queue").get_attribute("aria-describedby")
    assert described == said.get_attribute("id")
