"""Writes a path out: its sections in time order with their shares, and what dominated it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from llmlat_processor.model import Alternative, Path, RootPaths, Section, Span, Trace
from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import (
    Page,
    duration,
    fit,
    named,
    paragraph,
    printable,
)
from llmlat_processor.views.wording import ABSENCES, percent
from llmlat_semconv.values import Evidence

SHOWN_SECTIONS: Final = 20
SHOWN_LEADERS: Final = 4
SHOWN_ALTERNATIVES: Final = 3
ROOM_FOR_OFFSETS: Final = 70
"""Lines narrower than this leave out when a section began: the order says the most of it."""


def draw_paths(paths: RootPaths, trace: Trace, page: Page) -> Iterator[Text]:
    """Write both paths; instead of a path that is absent, why it is."""
    spans = {span.span_id: span for span in trace.operations}
    yield from _path("the end", page.glyphs.e2e, paths.e2e, page)
    yield from _alternatives(paths.e2e, spans, page)
    yield Text()
    if paths.ttft is not None:
        goal = "the first useful content"
        if paths.ttft.root is not paths.root:
            goal += f", counted from {printable(paths.ttft.root.name, page.glyphs)}"
        yield from _path(goal, page.glyphs.ttft, paths.ttft, page)
        yield from _alternatives(paths.ttft, spans, page)
    elif paths.ttft_absence is not None:
        yield Text(f"No path to a first useful content: {ABSENCES[paths.ttft_absence]}.")


def _path(goal: str, mark: str, path: Path, page: Page) -> Iterator[Text]:
    whole = path.duration_ns
    length = duration(whole, page.glyphs)
    yield Text(f"{mark} The path to {goal}: {length}", theme.HEADING)
    yield Text(paragraph(_leaders(path, page), page, separator=", "))
    shown = _longest(path.sections, None if page.everything else SHOWN_SECTIONS)
    table = _Table(path, shown, page)
    for section in shown:
        yield table.line(section)
    if len(shown) < len(path.sections):
        spent = duration(whole - sum(one.duration_ns for one in shown), page.glyphs)
        count = len(path.sections) - len(shown)
        yield Text(f"  not shown: {count:,} shorter sections, together {spent}", theme.QUIET)


def _alternatives(path: Path, spans: Mapping[bytes, Span], page: Page) -> Iterator[Text]:
    """Where the clocks allow another path, which one."""
    shown = path.alternatives if page.everything else path.alternatives[:SHOWN_ALTERNATIVES]
    for one in shown:
        words = f"ambiguous: {_alternative(one, spans, page)}"
        yield Text(paragraph(words.split(), page), theme.WARNING)
    if len(shown) < len(path.alternatives):
        more = len(path.alternatives) - len(shown)
        yield Text(f"  ambiguous in {more:,} more places", theme.WARNING)


def _alternative(one: Alternative, spans: Mapping[bytes, Span], page: Page) -> str:
    other, entered = (
        named(spans[span_id], page) if span_id in spans else f"span {span_id.hex()}"
        for span_id in (one.other, one.entered)
    )
    return f"the clocks allow {other} in place of {entered}"


def _leaders(path: Path, page: Page) -> list[str]:
    """What dominated: `decode vllm 3.40 s (53 %)`, `queue vllm 920 ms (14 %)`, `...`."""
    leaders = path.largest()
    said = [
        f"{label.value} {printable(service, page.glyphs)} {duration(spent, page.glyphs)} "
        f"({percent(spent, path.duration_ns)})"
        for label, service, spent in leaders[:SHOWN_LEADERS]
    ]
    return [*said, "..."] if len(leaders) > SHOWN_LEADERS else said


def _longest(sections: Sequence[Section], limit: int | None) -> list[Section]:
    """The longest ones, in time order."""
    if limit is None or len(sections) <= limit:
        return list(sections)
    order = sorted(range(len(sections)), key=lambda i: (-sections[i].duration_ns, i))
    return [sections[i] for i in sorted(order[:limit])]


class _Table:
    """Columns as wide as what stands in them; the bar takes what is left of the line."""

    def __init__(self, path: Path, shown: Sequence[Section], page: Page) -> None:
        self.path, self.page = path, page
        self.label = max((len(one.label.value) for one in shown), default=0)
        services = {printable(one.span.resource.service, page.glyphs) for one in shown}
        room = max(10, page.width // 5)
        self.service = min(max(map(cell_len, services), default=0), room)
        self.has_offsets = page.width >= ROOM_FOR_OFFSETS
        fixed = 44 if self.has_offsets else 34
        self.bar = max(0, page.width - self.label - self.service - fixed)

    def line(self, section: Section) -> Text:
        """`+1.55 s  decode  vllm  3.40 s  53 %  reported  ████`."""
        glyphs, path = self.page.glyphs, self.path
        since = duration(section.start_ns - path.sections[0].start_ns, glyphs)
        bound = glyphs.at_most if section.evidence is Evidence.BOUNDED else ""
        amount = bound + duration(section.duration_ns, glyphs)
        share = percent(section.duration_ns, path.duration_ns)
        said = "" if section.evidence is Evidence.MEASURED else section.evidence.value
        style = theme.LABEL_STYLES[section.label.value]
        line = Text("  ").append(f"{'+' + since:>8}  " if self.has_offsets else "", theme.QUIET)
        line.append(f"{section.label.value:<{self.label}}  ", style)
        line.append(fit(section.span.resource.service, self.service, glyphs), theme.SERVICE)
        line.append(f" {amount:>10} {share:>6}  ").append(f"{said:<8}  ", theme.QUIET)
        filled = round(self.bar * section.duration_ns / max(path.duration_ns, 1))
        line.append(glyphs.e2e_cell * filled, style)
        line.rstrip()
        return line
