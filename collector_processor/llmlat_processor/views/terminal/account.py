"""Writes what stands beside the paths: the ledger, spare time, findings in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from llmlat_processor.model import Assumptions, ExplainedTrace, Finding, RootPaths, Span, Trace
from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import Page, duration, named, paragraph
from llmlat_processor.views.wording import (
    ClockMap,
    by_weight,
    meaning,
    size,
    spare,
    spared,
)
from llmlat_semconv.values import FindingKind

SHOWN_FINDINGS: Final = 12
SHOWN_SPARE: Final = 5
SHOWN_PROOFS: Final = 4
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
    spans = {span.span_id: span for span in explained.trace.spans}
    yield Text("Findings", theme.HEADING)
    groups = _alike(findings, clocks, page)
    shown = groups if page.everything else groups[:SHOWN_FINDINGS]
    proofs = 0
    for finding, *others in shown:
        yield from _finding(finding, spans.get(finding.of), page)
        proofs += bool(finding.proof)
        if page.everything or proofs <= SHOWN_PROOFS:
            yield from _proof(finding, spans, clocks, page)
        if others:
            calls = "1 more call shows" if len(others) == 1 else f"{len(others):,} more calls show"
            yield Text(f"    {calls} the same of these clocks", theme.QUIET)
    yield from _more(len(findings) - sum(map(len, shown)))
    if proofs > SHOWN_PROOFS and not page.everything:
        yield Text(f"  the proofs of {proofs - SHOWN_PROOFS:,} are left out", theme.QUIET)


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


def _alike(
    findings: Sequence[Finding], clocks: ClockMap, page: Page
) -> Sequence[Sequence[Finding]]:
    """What nothing explains first; one offset of two clocks once, however many calls show it."""
    groups: list[list[Finding]] = []
    offsets: dict[tuple[str, ...], list[list[Finding]]] = {}
    for _, finding in by_weight(findings):
        of_two: list[list[Finding]] = []
        if finding.kind is FindingKind.APPARENT_NEGATIVE_NETWORK and not page.everything:
            pair = tuple(clocks.domain(witness) for witness in finding.witnesses)
            of_two = offsets.setdefault(pair, [])
        group = next((group for group in of_two if _overlap(group[0], finding)), None)
        if group is None:
            group = []
            groups.append(group)
            of_two.append(group)
        group.append(finding)
    return groups


def _overlap(one: Finding, other: Finding) -> bool:
    """Whether one offset would do for both."""
    if one.interval is None or other.interval is None:
        return False
    low, high = one.interval
    least, most = other.interval
    is_before = high is not None and least is not None and high < least
    is_after = low is not None and most is not None and most < low
    return not (is_before or is_after)


def _finding(finding: Finding, span: Span | None, page: Page) -> Iterator[Text]:
    """What was found where on one line, what it means below."""
    glyphs = page.glyphs
    line = Text(f"  {glyphs.warning} {finding.kind.value}", theme.WARNING)
    amount = size(finding, glyphs.micro)
    line.append(f" {amount}" if amount else "")
    about = named(span, page) if span is not None else f"span {finding.of.hex()}"
    if line.cell_len + 2 + cell_len(about) <= page.width:
        yield line.append(f"  {about}", "default")
    else:
        yield line
        yield Text(paragraph(about.split(), page, indent=4))
    yield Text(paragraph(meaning(finding, glyphs.micro).split(), page, indent=4))


def _proof(
    finding: Finding, spans: Mapping[bytes, Span], clocks: ClockMap, page: Page
) -> Iterator[Text]:
    """Each message with what it says of two clocks, and what all of them together come to."""
    if not finding.proof:
        return
    glyphs = page.glyphs
    limits = clocks.limits(finding, glyphs.micro)
    shown = limits if page.everything else limits[:SHOWN_MESSAGES]
    for limit in shown:
        left, arrived = (
            named(spans[each], page) if each in spans else f"span {each.hex()}"
            for each in (limit.message.left, limit.message.arrived)
        )
        words = f"from {left} to {arrived}: {limit.of} is {limit.bound} {limit.than}"
        yield Text(paragraph(words.split(), page, indent=6), theme.QUIET)
    yield from _more(len(limits) - len(shown))
    words = clocks.together(finding, glyphs.micro)
    yield Text(paragraph(words.split(), page, indent=6), theme.QUIET)


def _spare(span: Span, slack_ns: int, page: Page) -> str:
    return f"{named(span, page)}, {spare(span, slack_ns, page.glyphs.micro)}"


def _more(count: int) -> Iterator[Text]:
    if count > 0:
        yield Text(f"  and {count:,} more", theme.QUIET)
