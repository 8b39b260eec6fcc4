"""Writes what stands beside the paths: the ledger, spare time, findings in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from llmlat_processor.model import Assumptions, Finding, RootPaths, Span, Trace
from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import Page, duration, paragraph, printable
from llmlat_processor.views.wording import PLAIN_WORDS, spare, spared

SHOWN_FINDINGS: Final = 12
SHOWN_SPARE: Final = 5


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


def draw_findings(findings: Sequence[Finding], trace: Trace, page: Page) -> Iterator[Text]:
    """Write each finding in plain words, with the span that it is about."""
    if not findings:
        return
    named = {span.span_id: span for span in trace.spans}
    yield Text("Findings", theme.HEADING)
    shown = findings if page.everything else findings[:SHOWN_FINDINGS]
    for finding in shown:
        yield from _finding(finding, named.get(finding.of), page)
    yield from _more(len(findings) - len(shown))


def draw_assumptions(used: Assumptions, page: Page) -> Iterator[Text]:
    """State what the result takes for granted."""
    tail = duration(used.tail_ns, page.glyphs)
    stamps = (
        "the resolution of stamps is found per clock"
        if used.resolution_ns is None
        else f"stamps are exact to {duration(used.resolution_ns, page.glyphs)}"
    )
    words = f"assumed: a server may go on for {tail} after its last output; {stamps}"
    yield Text(paragraph(words.split(), page, indent=0), theme.QUIET)


def _finding(finding: Finding, span: Span | None, page: Page) -> Iterator[Text]:
    """What was found where on one line, what it means below."""
    line = Text(f"  {page.glyphs.warning} {finding.kind.value}", theme.WARNING)
    if finding.amount_ns is not None:
        line.append(f" {duration(finding.amount_ns, page.glyphs)}")
    about = _named(span, page) if span is not None else f"span {finding.of.hex()}"
    yield line.append(f"  {about}", "default")
    yield Text(paragraph(PLAIN_WORDS[finding.kind].split(), page, indent=4))


def _spare(span: Span, slack_ns: int, page: Page) -> str:
    return f"{_named(span, page)}, {spare(span, slack_ns, page.glyphs.micro)}"


def _more(count: int) -> Iterator[Text]:
    if count > 0:
        yield Text(f"  and {count:,} more", theme.QUIET)


def _named(span: Span, page: Page) -> str:
    service = printable(span.resource.service, page.glyphs)
    return f"{printable(span.name, page.glyphs)} ({service})"
