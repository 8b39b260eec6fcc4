"""Writes what stands beside the paths: the ledger, spare time, findings in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rich.text import Text

from llmlat_processor.model import Assumptions, ExplainedTrace, Finding, RootPaths, Span, Trace
from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import Page, duration, paragraph, printable
from llmlat_processor.views.wording import (
    PLAIN_WORDS,
    ClockMap,
    against_caller,
    granted,
    spare,
    spared,
)

SHOWN_FINDINGS: Final = 12
SHOWN_SPARE: Final = 5
SHOWN_MESSAGES: Final = 6


def draw_ledger(paths: RootPaths, page: Page) -> Iterator[Text]:
    """Write work, busy and overlapped time, and retry waste where attempts are visible."""
    ledger = paths.ledger
    amounts = {"work": ledger.work_ns, "busy": ledger.busy_ns, "overlapped": ledger.overlapped_ns}
    if ledger.retry_waste_ns is not None:
        amounts["retry waste"] = ledger.retry_waste_ns
    said = (f"{name} {duration(amount, page.glyphs)}" for name, amount in amounts.items())
    yield Text("Ledger", theme.HEADING)
    yield Text(paragraph(said, page, page.glyphs.separator))


def draw_spare(paths: RootPaths, trace: Trace, page: Page) -> Iterator[Text]:
    """Write the longest operations off the path to the end, and how much longer they may be."""
    off = spared(paths, trace)
    if not off:
        return
    yield Text("Off the path to the end", theme.HEADING)
    shown = off if page.everything else off[:SHOWN_SPARE]
    for span in shown:
        yield Text(paragraph(_spare(span, paths.slacks_ns[span], page).split(), page))
    yield from _more(len(off) - len(shown))


def draw_findings(explained: ExplainedTrace, clocks: ClockMap, page: Page) -> Iterator[Text]:
    """Write each finding in plain words, with the span that it is about and what proves it."""
    findings = explained.findings
    if not findings:
        return
    named = {span.span_id: span for span in explained.trace.spans}
    yield Text("Findings", theme.HEADING)
    shown = findings if page.everything else findings[:SHOWN_FINDINGS]
    for finding in shown:
        yield from _finding(finding, named.get(finding.of), page)
        yield from _proof(finding, named, clocks, page)
    yield from _more(len(findings) - len(shown))


def draw_assumptions(used: Assumptions, page: Page, *, has_clocks: bool = False) -> Iterator[Text]:
    """State what the result takes for granted."""
    tail = duration(used.tail_ns, page.glyphs)
    stamps = (
        "the resolution of stamps is found per clock"
        if used.resolution_ns is None
        else f"stamps are exact to {duration(used.resolution_ns, page.glyphs)}"
    )
    words = f"assumed: a server may go on for {tail} after its last output; {stamps}"
    if has_clocks:
        words += (
            f"; two clocks part by at most {used.drift_ppm:,} millionths of the time that passes"
        )
    yield Text(paragraph(words.split(), page, indent=0), theme.QUIET)


def _finding(finding: Finding, span: Span | None, page: Page) -> Iterator[Text]:
    """What was found where on one line, what it means below."""
    line = Text(f"  {page.glyphs.warning} {finding.kind.value}", theme.WARNING)
    if finding.amount_ns is not None:
        line.append(f" {duration(finding.amount_ns, page.glyphs)}")
    about = _named(span, page) if span is not None else f"span {finding.of.hex()}"
    yield line.append(f"  {about}", "default")
    words = PLAIN_WORDS[finding.kind]
    offset = against_caller(finding, page.glyphs.micro)
    if offset:
        words += f"; its clock is ahead of its caller's by {offset}"
    yield Text(paragraph(words.split(), page, indent=4))


def _proof(
    finding: Finding, named: Mapping[bytes, Span], clocks: ClockMap, page: Page
) -> Iterator[Text]:
    """Each message with what it says of two clocks, and what all of them together come to."""
    if not finding.proof:
        return
    glyphs = page.glyphs
    limits = clocks.limits(finding, glyphs.micro)
    shown = limits if page.everything else limits[:SHOWN_MESSAGES]
    for limit in shown:
        left, arrived = (
            _named(named[each], page) if each in named else f"span {each.hex()}"
            for each in (limit.message.left, limit.message.arrived)
        )
        of, than = printable(limit.of, glyphs), printable(limit.than, glyphs)
        words = f"by {left} to {arrived}: {of} is ahead of {than} by {limit.bound}"
        yield Text(paragraph(words.split(), page, indent=6), theme.QUIET)
    yield from _more(len(limits) - len(shown))
    words = f"together: {granted(finding, glyphs.micro)}"
    yield Text(paragraph(words.split(), page, indent=6), theme.QUIET)


def _spare(span: Span, slack_ns: int, page: Page) -> str:
    return f"{_named(span, page)}, {spare(span, slack_ns, page.glyphs.micro)}"


def _more(count: int) -> Iterator[Text]:
    if count > 0:
        yield Text(f"  and {count:,} more", theme.QUIET)


def _named(span: Span, page: Page) -> str:
    service = printable(span.resource.service, page.glyphs)
    return f"{printable(span.name, page.glyphs)} ({service})"
