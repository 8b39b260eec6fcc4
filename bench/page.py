"""The page of a trace of 5,000 spans in Chromium: how soon it is there, and how long it stops.

Chromium reports tasks over 50 ms, which a reader can feel (Long Tasks API). Needs Debian's
Chromium and playwright, so it runs only when it is asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time_ns
from typing import Any, Final

from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from llmlat_processor.commands.page import told
from llmlat_processor.model import (
    CLIENT,
    INTERNAL,
    NO_ATTRIBUTES,
    SERVER,
    Attributes,
    Resource,
    Span,
)
from llmlat_processor.pipeline import process
from llmlat_processor.views.page import page
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import OperationName

SUMMARY: Final = "one page of 5,000 spans in Chromium: opened, scrolled, a what-if moved"

_CALLS: Final = 500
_MS: Final = 1_000_000
_START_NS: Final = 1_700_000_000 * 10**9
_APP: Final = Resource({}, service="adviser", process="app", domain="app", weak=False)
_ENGINE: Final = Resource({}, service="vllm", process="gpu", domain="gpu", weak=False)
_CHROMIUM: Final = "/usr/bin/chromium"
_ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--no-first-run")
_WATCH: Final = """
window.long = [];
new PerformanceObserver((list) => list.getEntries().forEach((one) => long.push(one.duration)))
  .observe({ type: "longtask", buffered: true });
"""
_LOADED: Final = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    trace = told(process(_spans()))
    started = process_time_ns()
    drawn = page([trace])
    drawing_ms = (process_time_ns() - started) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_text(drawn, encoding="utf-8")
        rounds = list(_rounds(file.as_uri(), progress.rounds("page", 1 if quick else 5)))
    load_ms = median(one["load"] for one in rounds)
    scroll_ms = median(one["scroll"] for one in rounds)
    slider_ms = median(one["slider"] for one in rounds)
    rows: list[list[Cell]] = [
        ["drawn by Python, CPU time", drawing_ms],
        ["opened", load_ms],
        ["longest task while scrolling", scroll_ms],
        ["longest task at a key on a control", slider_ms],
    ]
    heading = f"{len(trace.explained.trace.spans):,} spans, {len(drawn.encode()) / 1e6:.1f} MB"
    goals = [
        Goal("page_load", load_ms, 2_000, "ms"),
        Goal("page_scroll_task", scroll_ms, 100, "ms"),
        Goal("page_control_task", slider_ms, 100, "ms"),
    ]
    return Report("page", [Table(heading, ["what", "ms"], rows)], goals)


def _rounds(address: str, numbers: Iterator[int]) -> Iterator[dict[str, float]]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only this bench needs it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=[*_ARGUMENTS])
        for _ in numbers:
            shown = browser.new_page(viewport={"width": 1280, "height": 800})
            shown.add_init_script(_WATCH)
            shown.goto(address)
            found = {"load": float(shown.evaluate(_LOADED))}
            for name, act in {"scroll": _scroll, "slider": _move}.items():
                shown.wait_for_timeout(500)
                shown.evaluate("long.length = 0")
                act(shown)
                shown.wait_for_timeout(500)
                found[name] = float(shown.evaluate("Math.max(0, ...long)"))
            shown.close()
            yield found
        browser.close()


def _scroll(shown: Any) -> None:
    for _ in range(15):
        shown.mouse.wheel(0, 4_000)
        shown.wait_for_timeout(50)


def _move(shown: Any) -> None:
    shown.locator("input[type=range]").first.focus()
    for _ in range(5):
        shown.keyboard.press("ArrowLeft")
        shown.wait_for_timeout(200)


def _spans() -> list[Span]:
    """An agent that calls an engine again and again, each call with its phases."""
    does = {names.GEN_AI_OPERATION_NAME: OperationName.INVOKE_AGENT.value}
    spans = [_span(1, 0, "invoke_agent", 0, 1_000 * _CALLS, attributes=does)]
    for call in range(_CALLS):
        spans += _call(2 + 10 * call, 1_000 * call)
    return spans


def _call(number: int, at: int) -> Iterator[Span]:
    does = {names.GEN_AI_OPERATION_NAME: OperationName.CHAT.value}
    yield _span(number, 1, "chat", at, at + 950, kind=CLIENT, attributes=does)
    caller = ((Phase.SEND, 0, 10), (Phase.WAIT, 10, 400), (Phase.STREAM, 400, 940))
    for position, (phase, start, end) in enumerate(caller, start=number + 1):
        yield _phase(position, number, phase, at + start, at + end, _APP)
    engine = number + 4
    yield _span(engine, number, "engine chat", at + 15, at + 930, _ENGINE, kind=SERVER)
    callee = ((Phase.QUEUE, 15, 200), (Phase.PREFILL, 200, 390), (Phase.DECODE, 390, 930))
    for position, (phase, start, end) in enumerate(callee, start=engine + 1):
        yield _phase(position, engine, phase, at + start, at + end, _ENGINE)
    yield _span(number + 8, 1, "parse", at + 955, at + 970)
    yield _span(number + 9, 1, "execute_tool", at + 955, at + 990)


def _phase(number: int, parent: int, phase: Phase, start: int, end: int, where: Resource) -> Span:
    said = {names.LLMLAT_PHASE_NAME: phase.value}
    return _span(number, parent, phase.value, start, end, where, attributes=said)


def _span(
    number: int,
    parent: int,
    name: str,
    start_ms: int,
    end_ms: int,
    where: Resource = _APP,
    *,
    kind: int = INTERNAL,
    attributes: Attributes = NO_ATTRIBUTES,
) -> Span:
    return Span(
        b"\x01" * 16,
        number.to_bytes(8, "big"),
        parent.to_bytes(8, "big") if parent else b"",
        name,
        kind,
        _START_NS + start_ms * _MS,
        _START_NS + end_ms * _MS,
        where,
        attributes=attributes,
        attribute_count=len(attributes),
    )
