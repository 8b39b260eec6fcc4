"""The waterfall: operations as a tree with their phases, each where it stands on the root's clock.

Without script it is a list of all rows; with it, a tree grid that arrow keys move through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Final

from llmlat_processor.model import ExplainedTrace, RootPaths, Span
from llmlat_processor.views.page.markup import (
    DIAMOND,
    DOT,
    Addresses,
    across,
    amount,
    figure,
    look,
    name,
    swatch,
    text,
)
from llmlat_processor.views.waterfall.placement import (
    OFF,
    ON_E2E,
    ON_TTFT,
    Band,
    Placement,
    Stretch,
)
from llmlat_processor.views.waterfall.rows import Row, Rows, rows_of
from llmlat_processor.views.wording import duration
from llmlat_semconv.values import Evidence

SHOWN_OPERATIONS: Final = 10_000
"""More than a browser scrolls through with ease; those on the paths and the longest stay."""

LONG: Final = 300
"""Rows; those of a longer waterfall are laid out where they are looked at."""
TOGETHER: Final = 50
"""Rows that the browser lays out at once, when they come near the window: it watches each such
group, which for thousands of single rows takes longer than to draw what is seen of them."""

FINEST: Final = 2_000
"""Parts of the whole: a gap of one is less than a pixel, even on wide screens."""
DEEP: Final = 12
"""Levels that leave room for names at the usual indent."""

MOST_TICKS: Final = 6

_BARS: Final = {OFF: "off", ON_TTFT: "ttft", ON_E2E: "e2e"}
_PATHS: Final = {
    (True, True): "on both paths",
    (True, False): "on the path to the end",
    (False, True): "on the path to the first useful content",
    (False, False): "on no path",
}
_ACCOUNTS: Final = {
    "e2e_self_ns": "of the path to the end",
    "ttft_self_ns": "of the path to the first useful content",
    "slack_ns": "known to be spare",
    "hidden_ns": "off the path",
    "trailing_ns": "after its last output",
}


class Waterfall:
    """One root's rows, and the addresses under which they are found."""

    def __init__(
        self, explained: ExplainedTrace, paths: RootPaths, where: str, addresses: Addresses
    ) -> None:
        self._where = where
        self._placed = Placement(explained, paths)
        self._rows = rows_of(self._placed, _limit(explained))
        self._numbers = {span: at for at, span in enumerate(explained.trace.operations)}
        self._domains = explained.aligned.domains
        self._accounts = _accounts(paths)
        self._whole_ns = max(paths.root.duration_ns, 1)
        self.addresses: Mapping[Span, str] = {
            row.span: addresses.of(row.span.span_id) for row in self._rows.drawn if not row.is_phase
        }

    def draw(self) -> Iterator[str]:
        """Legend, axis, rows, and how many are not drawn."""
        content_ns = self._placed.content_ns
        line = "" if content_ns is None else f"--content:{across(content_ns, self._whole_ns)};"
        step = f"--tick:{across(_tick_ns(self._whole_ns), self._whole_ns)}"
        levels = [_level(row) for row in self._rows.drawn]
        kind = "waterfall has-content" if line else "waterfall"
        if max(levels, default=0) > DEEP:
            kind += " is-deep"
        if len(levels) > LONG:
            kind += " is-long"
        yield f'<div class="{kind}" style="{line}{step}">'
        yield from self._tools()
        yield '<div class="rows" role="treegrid" aria-label="Operations and their phases">'
        yield from self._axis(content_ns)
        below = pairwise([*levels, 0])
        drawn = (
            self._row(row, level, opens=next_level > level)
            for row, (level, next_level) in zip(self._rows.drawn, below, strict=True)
        )
        while some := list(islice(drawn, TOGETHER)):
            yield f'<div class="some" role="rowgroup" style="--rows:{len(some)}">'
            yield from some
            yield "</div>"
        yield "</div>"
        yield from _not_drawn(self._rows)
        yield "</div>"

    def _tools(self) -> Iterator[str]:
        yield '<div class="tools" hidden><label>Filter <input type="search" class="filter"'
        yield ' placeholder="name, service or phase"></label>'
        yield '<label><input type="checkbox" class="only-path"> on a path only</label>'
        yield '<button type="button" class="fold">Collapse all</button>'
        yield '<span class="count" role="status" aria-live="polite"></span></div>'
        yield f'<p class="legend"><span>{DOT} on the path to the end</span>'
        if self._placed.ttft:
            yield f"<span>{DIAMOND} on the path to the first useful content</span>"
        yield '<span><i class="key bar e2e"></i> that path</span>'
        if self._placed.content_ns is not None:
            yield '<span><i class="key bar ttft"></i> the latter only</span>'
        yield '<span><i class="key bar off"></i> on neither</span>'
        if any(row.band is not None for row in self._rows.drawn):
            yield '<span><i class="key band"></i> where its clock allows it</span>'
        yield "</p>"

    def _axis(self, content_ns: int | None) -> Iterator[str]:
        yield '<div class="axis" role="row"><div role="columnheader">Operation</div>'
        yield '<div class="time" role="columnheader">Duration</div>'
        yield '<div class="ticks" role="columnheader"><span class="unseen">Place in time</span>'
        step_ns = _tick_ns(self._whole_ns)
        for at_ns in range(0, self._whole_ns, step_ns):
            if self._whole_ns - at_ns > step_ns // 2 or at_ns == 0:
                yield f'<span style="left:{across(at_ns, self._whole_ns)}">{duration(at_ns)}</span>'
        yield f'<span class="last">{duration(self._whole_ns)}</span>'
        if content_ns is not None:
            side = " left" if content_ns * 2 > self._whole_ns else ""
            said = f"first useful content {duration(content_ns)}"
            yield f'<span class="content{side}"><span>{said}</span></span>'
        yield "</div></div>"

    def _row(self, row: Row, level: int, *, opens: bool) -> str:
        kind = "phase" if row.is_phase else "op"
        marks = f"{' e2e' if row.on_e2e else ''}{' ttft' if row.on_ttft else ''}"
        expanded, twist = (' aria-expanded="true"', '<i class="twist"></i>') if opens else ("", "")
        number = self._numbers[row.span]
        at = (
            ""
            if row.is_phase
            else f' id="{self.addresses[row.span]}" data-at="/operations.{number}"'
        )
        parts = [
            f'<div class="row {kind}{marks}" role="row" aria-level="{level}"{expanded}{at}>',
            self._what(row, twist),
            f'<data class="time" role="gridcell"{_length(row)}</data>',
            self._lane(row),
        ]
        if not row.is_phase:
            parts.append(self._facts(row.span, number))
        return "".join([*parts, "</div>"])

    def _what(self, row: Row, twist: str) -> str:
        if row.is_phase:
            parts = [twist, swatch(row.name)]
        else:
            shown = "service" if row.service else "unseen"
            service = name(row.span.resource.service, "service", shown)
            parts = [twist, name(row.name, "name", "name"), service]
        if row.is_error:
            parts.append('<span class="failed">failed</span>')
        if row.evidence not in {None, Evidence.MEASURED}:
            parts.append(f'<span class="quiet">{text(str(row.evidence))}</span>')
        return f'<div class="what" role="rowheader">{"".join(parts)}</div>'

    def _lane(self, row: Row) -> str:
        """The row's stretches; what lies outside the root is an arrow at that edge."""
        parts = []
        if not row.stretches and not row.is_phase:
            parts.append('<span class="quiet other">other clock</span>')
        if row.band is not None:
            parts.append(f'<i class="band" style="{self._place(row.band)}"></i>')
        colour = f" {look(row.name)}" if row.is_phase else ""
        parts += [
            self._bar(stretch, colour)
            for stretch in _joined(row.stretches, self._whole_ns // FINEST)
        ]
        if any(stretch.start_ns < 0 for stretch in row.stretches):
            parts.append('<b class="before" title="starts before the root">«</b>')
        if any(stretch.end_ns > self._whole_ns for stretch in row.stretches):
            parts.append('<b class="beyond" title="ends after the root">»</b>')
        said = self._said(row)
        return f'<div class="lane" role="gridcell" aria-label="{said}">{"".join(parts)}</div>'

    def _bar(self, stretch: Stretch, colour: str) -> str:
        kind = f"bar {_BARS[stretch.on]}{colour}"
        return f'<i class="{kind}" style="{self._place(stretch)}"></i>'

    def _place(self, drawn: Stretch | Band) -> str:
        """From left to right, as far as it lies in the root."""
        start_ns = min(max(drawn.start_ns, 0), self._whole_ns)
        size_ns = min(max(drawn.end_ns, 0), self._whole_ns) - start_ns
        return f"left:{across(start_ns, self._whole_ns)};width:{across(size_ns, self._whole_ns)}"

    def _said(self, row: Row) -> str:
        """The bar and the band in words."""
        words = _PATHS[row.on_e2e, row.on_ttft]
        if row.stretches:
            start = duration(min(stretch.start_ns for stretch in row.stretches))
            end = duration(max(stretch.end_ns for stretch in row.stretches))
            words += f", from {start} to {end}"
        if row.band is not None:
            start, end = duration(row.band.start_ns), duration(row.band.end_ns)
            within = f"by its clock somewhere from {start} to {end}"
            words += f"; {within}, known to {duration(row.band.spread_ns)}"
        return words

    def _facts(self, span: Span, number: int) -> str:
        """What stands beside the row once it is chosen: its account on the paths, its id."""
        span_id = span.span_id.hex()
        told = [
            f"{amount(size, key)} {_ACCOUNTS[key]} · "
            for key, size in self._accounts.get(span, {}).items()
        ]
        account = f'<span data-at="/{self._where}.operations.{span_id}">{"".join(told)}</span>'
        clock = f"clock {name(self._domains[number], 'clock_domain')} · "
        identity = f'<code data-text="span_id">{span_id}</code>'
        link = f'<a class="copy" href="#{self.addresses[span]}">link to span {identity}</a>'
        said = f"{account if told else ''}{clock}{link}"
        return f'<div class="facts" role="gridcell">{said}</div>'


def _limit(explained: ExplainedTrace) -> int | None:
    return None if len(explained.trace.operations) <= SHOWN_OPERATIONS else SHOWN_OPERATIONS


def _joined(stretches: Sequence[Stretch], finest_ns: int) -> list[Stretch]:
    """What an eye can tell apart: no gap under `finest_ns`, nothing wholly under another bar."""
    joined: list[Stretch] = []
    for one in stretches:
        last = joined[-1] if joined else None
        if last is not None and (last.start_ns, last.end_ns) == (one.start_ns, one.end_ns):
            joined[-1] = one
        elif (
            last is not None
            and last.on == one.on != OFF
            and 0 <= one.start_ns - last.end_ns <= finest_ns
        ):
            joined[-1] = Stretch(last.start_ns, one.end_ns, one.on)
        else:
            joined.append(one)
    return joined


def _level(row: Row) -> int:
    return row.depth + (2 if row.is_phase else 1)


def _length(row: Row) -> str:
    key = "" if row.is_phase else "duration_ns"
    return figure(row.duration_ns, key, row.evidence)


def _accounts(paths: RootPaths) -> dict[Span, dict[str, int]]:
    accounts: dict[Span, dict[str, int]] = {}
    amounts: Sequence[Mapping[Span, int]] = (
        paths.self_times_ns,
        paths.ttft_self_times_ns,
        paths.slacks_ns,
        paths.ledger.hidden_ns,
        paths.ledger.trailing_ns,
    )
    for key, of in zip(_ACCOUNTS, amounts, strict=True):
        for span, size in of.items():
            accounts.setdefault(span, {})[key] = size
    return accounts


def _tick_ns(whole_ns: int) -> int:
    """The shortest of 1, 2, 5, 10, 20, ... that needs few ticks."""
    step = 1
    while True:
        for times in (1, 2, 5):
            if whole_ns <= step * times * MOST_TICKS:
                return step * times
        step *= 10


def _not_drawn(rows: Rows) -> Iterator[str]:
    if rows.hidden_operations:
        words = f"not drawn: {rows.hidden_operations:,} operations, off the paths or short"
        yield f'<p class="quiet">{words}</p>'
    if rows.hidden_phases:
        words = f"not drawn: {rows.hidden_phases:,} phases under 0.5 % of the whole"
        yield f'<p class="quiet">{words}</p>'
