"""Puts the parts of the picture together, from the title to what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group
from rich.text import Text

from llmlat_processor.model import ExplainedTrace, RootPaths, Span
from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.account import (
    draw_assumptions,
    draw_findings,
    draw_ledger,
    draw_spare,
)
from llmlat_processor.views.terminal.answers import draw_answers
from llmlat_processor.views.terminal.clocks import draw_clocks, draw_first_contents
from llmlat_processor.views.terminal.paths import draw_paths
from llmlat_processor.views.terminal.theme import Page, duration, printable, short
from llmlat_processor.views.terminal.waterfall import draw_waterfall
from llmlat_processor.views.waterfall.placement import Placement
from llmlat_processor.views.waterfall.rows import rows_of
from llmlat_processor.views.wording import Answer, ClockMap

SHOWN_OPERATIONS: Final = 60
NO_ANSWERS: Final[Mapping[Span, Sequence[Answer]]] = {}


def render(
    explained: ExplainedTrace,
    width: int,
    *,
    answers: Mapping[Span, Sequence[Answer]] = NO_ANSWERS,
    unicode: bool = True,
    everything: bool = False,
) -> Group:
    """Draw a trace.

    Args:
        explained: the finished trace.
        width: cells of a line; 80 and more read best, under 60 lines grow longer than asked.
        answers: per root the what-ifs that were asked, if any.
        unicode: False draws in ASCII.
        everything: True draws every operation, phase, section and finding, however many.
    """
    page = Page(width, theme.UNICODE if unicode else theme.ASCII, everything)
    trace = explained.trace
    lines = [Text(f"trace {trace.trace_id.hex()}", theme.QUIET)]
    for paths in explained.paths.roots:
        lines += _root(explained, paths, page)
        lines += _block(draw_answers(answers.get(paths.root, ()), page))
        lines.append(Text())
    if not explained.paths.roots:
        lines.append(Text("No operation of this trace can be placed.", theme.WARNING))
    clocks = ClockMap(explained, lambda name: short(name, page))
    for block in (
        draw_first_contents(explained.paths.first_contents, page),
        draw_clocks(clocks, explained.aligned.clocks.left_out, page),
    ):
        written = [*block]
        lines += [*written, Text()] if written else []
    lines += draw_findings(explained, clocks, page)
    if explained.findings:
        lines.append(Text())
    lines += draw_assumptions(trace.assumptions, page, has_clocks=bool(clocks.clocks))
    return Group(*lines)


def _root(explained: ExplainedTrace, paths: RootPaths, page: Page) -> Iterator[Text]:
    placed = Placement(explained, paths)
    rows = rows_of(placed, None if page.everything else SHOWN_OPERATIONS)
    yield _title(explained, paths, page)
    yield from _block(draw_waterfall(placed, rows, page))
    yield from _block(draw_paths(paths, explained.trace, page))
    yield from _block(draw_ledger(paths, page))
    yield from _block(draw_spare(paths, explained.trace, page))


def _title(explained: ExplainedTrace, paths: RootPaths, page: Page) -> Text:
    root = paths.root
    title = Text(printable(root.name, page.glyphs), theme.HEADING)
    title.append(f"  {printable(root.resource.service, page.glyphs)}", theme.SERVICE)
    title.append(f"  {duration(root.duration_ns, page.glyphs)}", "not bold")
    if paths.ttft is not None:
        content = duration(paths.ttft.duration_ns, page.glyphs)
        title.append(f", first useful content after {content}", "not bold")
    if not explained.trace.complete:
        title.append("  incomplete: a parent is missing", theme.WARNING)
    return title


def _block(lines: Iterator[Text]) -> Iterator[Text]:
    """Set a blank line before a block, unless the block is empty."""
    for number, line in enumerate(lines):
        if number == 0:
            yield Text()
        yield line
