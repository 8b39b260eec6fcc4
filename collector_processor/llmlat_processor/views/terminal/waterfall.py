"""Draws the waterfall: an axis with the tick of first useful content, then one line a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from rich.text import Text

from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import Glyphs, Page, duration, printable
from llmlat_processor.views.waterfall.placement import OFF, ON_E2E, ON_TTFT, Placement, Stretch
from llmlat_processor.views.waterfall.rows import RAILS, Row, Rows
from llmlat_semconv.values import Evidence

MARKS: Final = 3
DURATION: Final = 10
MIN_LABEL: Final = 16
MAX_LABEL: Final = 56
MIN_BAR: Final = 8

OTHER_CLOCK: Final = "other clock"

# Characters of a bar with their styles; changed in place while a row is painted.
_Cells = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Widths in cells, the root's time that the bars stand for, and the tick's cell."""

    label: int
    bar: int
    whole_ns: int
    tick: int | None
    glyphs: Glyphs

    def cell(self, at_ns: int) -> int:
        """Cell that holds an instant; outside the bar for one outside the root."""
        return at_ns * self.bar // self.whole_ns

    def blank(self) -> _Cells:
        """An empty bar, with the rule that the tick hangs from."""
        cells = [(" ", "")] * self.bar
        if self.tick is not None:
            cells[self.tick] = (self.glyphs.rule, theme.TICK_STYLE)
        return cells


def draw_waterfall(placed: Placement, rows: Rows, page: Page) -> Iterator[Text]:
    """Draw the axis and the rows, and count what is not drawn."""
    layout = _layout(placed, rows, page)
    yield from _legend(placed, page.glyphs)
    yield _axis(placed, layout)
    for row in rows.drawn:
        yield _line(row, layout)
    if rows.hidden_operations:
        yield _quiet(f"not drawn: {rows.hidden_operations:,} operations, off the paths or short")
    if rows.hidden_phases:
        yield _quiet(f"not drawn: {rows.hidden_phases:,} phases under 0.5 % of the whole")


def _layout(placed: Placement, rows: Rows, page: Page) -> _Layout:
    longest = max(_label(row, page.glyphs).cell_len for row in rows.drawn)
    room = page.width - MARKS - DURATION - 2
    label = max(MIN_LABEL, min(longest, MAX_LABEL, page.width * 45 // 100, room - MIN_BAR))
    bar = max(MIN_BAR, room - label)
    whole = max(placed.operation(placed.root).duration_ns, 1)
    content = placed.content_ns
    tick = None if content is None else min(content * bar // whole, bar - 1)
    return _Layout(label, bar, whole, tick, page.glyphs)


def _legend(placed: Placement, glyphs: Glyphs) -> Iterator[Text]:
    marks = Text().append(glyphs.e2e, theme.E2E_STYLE).append(" on the path to the end")
    bars = Text().append(glyphs.e2e_cell, theme.E2E_STYLE).append(" on that path")
    if placed.ttft:
        marks.append("   ").append(glyphs.ttft, theme.TTFT_STYLE)
        marks.append(" on the path to the first useful content")
    if placed.content_ns is not None:
        bars.append("   ").append(glyphs.ttft_cell, theme.TTFT_STYLE)
        bars.append(" on the latter only")
    bars.append("   ").append(glyphs.off_cell, theme.OFF_STYLE).append(" on neither")
    if placed.content_ns is not None:
        bars.append("   ").append(glyphs.tick, theme.TICK_STYLE).append(" first useful content")
    yield from (marks, bars, Text())


def _axis(placed: Placement, layout: _Layout) -> Text:
    """`0` at the left, the root's duration at the right, the tick and its time between."""
    cells = layout.blank()
    _write(cells, 0, "0", theme.QUIET)
    whole = f" {duration(layout.whole_ns, layout.glyphs)}"
    if layout.tick is None or layout.tick < layout.bar - len(whole):
        _write(cells, layout.bar - len(whole), whole, theme.QUIET)
    if layout.tick is not None and placed.content_ns is not None:
        _write_tick(cells, layout.tick, placed.content_ns, layout)
    return _joined(Text(" " * (MARKS + layout.label + DURATION + 2)), cells)


def _write_tick(cells: _Cells, tick: int, content_ns: int, layout: _Layout) -> None:
    """The time stands right of the tick, or left of it, or nowhere: it never hides the tick."""
    said, glyph = duration(content_ns, layout.glyphs), layout.glyphs.tick
    after, before = f"{glyph} {said}", f" {said} {glyph}"
    whole = len(duration(layout.whole_ns, layout.glyphs))
    if tick + len(after) < layout.bar - whole:
        _write(cells, tick, after, theme.TICK_STYLE)
    elif tick + 1 >= len(before):
        _write(cells, tick + 1 - len(before), before, theme.TICK_STYLE)
    else:
        _write(cells, tick, glyph, theme.TICK_STYLE)


def _line(row: Row, layout: _Layout) -> Text:
    glyphs = layout.glyphs
    line = Text()
    line.append(glyphs.e2e if row.on_e2e else " ", theme.E2E_STYLE)
    line.append(glyphs.ttft if row.on_ttft else " ", theme.TTFT_STYLE).append(" ")
    line.append_text(_cropped(_label(row, glyphs), layout.label, glyphs))
    amount = duration(row.duration_ns, glyphs)
    bound = glyphs.at_most if row.evidence is Evidence.BOUNDED else ""
    line.append(f" {bound + amount:>{DURATION}} ", theme.QUIET if row.is_phase else "")
    return _joined(line, _bar(row, layout))


def _label(row: Row, glyphs: Glyphs) -> Text:
    """The tree, the name, and beside it a new service, a failure, or how a phase is known."""
    text = Text(_tree(row, glyphs), theme.QUIET)
    text.append(printable(row.name, glyphs), _style(row) if row.is_phase else "")
    if row.service:
        text.append(f"  {printable(row.service, glyphs)}", theme.SERVICE)
    if row.is_error:
        text.append("  failed", theme.WARNING)
    if row.evidence not in {None, Evidence.MEASURED}:
        text.append(f"  {row.evidence}", theme.QUIET)
    return text


def _tree(row: Row, glyphs: Glyphs) -> str:
    rails = row.rails[-RAILS:]
    levels = [f"{glyphs.trunk if follows else ' '} " for follows in rails]
    if rails and not row.is_phase:
        levels[-1] = f"{glyphs.branch if rails[-1] else glyphs.last_branch} "
    if len(row.rails) > RAILS:
        levels[0] = f"{glyphs.cut} "
    return "".join(levels)


def _bar(row: Row, layout: _Layout) -> _Cells:
    """The row's stretches; what lies outside the root is an arrow at that edge."""
    cells = layout.blank()
    if not row.stretches and not row.is_phase:
        _write(cells, 0, OTHER_CLOCK[: layout.bar], theme.QUIET)
    for stretch in row.stretches:
        _paint(cells, row, stretch, layout)
    if any(stretch.start_ns < 0 for stretch in row.stretches):
        cells[0] = (layout.glyphs.before, theme.WARNING)
    if any(stretch.end_ns > layout.whole_ns for stretch in row.stretches):
        cells[-1] = (layout.glyphs.beyond, theme.WARNING)
    return cells


def _paint(cells: _Cells, row: Row, stretch: Stretch, layout: _Layout) -> None:
    """Paint what lies inside the root, at least one cell of it."""
    first = layout.cell(stretch.start_ns)
    last = layout.cell(max(stretch.start_ns, stretch.end_ns - 1))
    glyphs = layout.glyphs
    drawn = {OFF: glyphs.off_cell, ON_TTFT: glyphs.ttft_cell, ON_E2E: glyphs.e2e_cell}
    style = theme.OFF_STYLE if stretch.on == OFF else _style(row)
    for cell in range(max(first, 0), min(last, layout.bar - 1) + 1):
        cells[cell] = (drawn[stretch.on], style)


def _style(row: Row) -> str:
    return theme.LABEL_STYLES.get(row.name, "") if row.is_phase else theme.E2E_STYLE


def _write(cells: _Cells, at: int, words: str, style: str) -> None:
    for cell, char in enumerate(words, start=at):
        cells[cell] = (char, style)


def _joined(line: Text, cells: _Cells) -> Text:
    for (style, glyph), run in groupby(cells, key=lambda cell: (cell[1], cell[0])):
        line.append(glyph * len([*run]), style)
    line.rstrip()
    return line


def _cropped(text: Text, width: int, glyphs: Glyphs) -> Text:
    """Cut or pad to exactly `width` cells."""
    if text.cell_len > width:
        text.truncate(width - 1)
        text.append(glyphs.cut, theme.QUIET)
    text.pad_right(width - text.cell_len)
    return text


def _quiet(words: str) -> Text:
    return Text(words, theme.QUIET)
