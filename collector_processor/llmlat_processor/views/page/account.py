"""What stands beside the paths: the ledger, spare time, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from llmlat_processor.model import Assumptions, RootPaths, Span, Trace
from llmlat_processor.views.page.markup import amount, count, named_span
from llmlat_processor.views.wording import spare, spared

OPEN_SPARE: Final = 5

_LEDGER: Final = {
    "work_ns": ("work", "the leaves' durations, added up"),
    "busy_ns": ("busy", "while at least one of them ran"),
    "overlapped_ns": ("overlapped", "work that ran while other work ran"),
}


def draw_ledger(paths: RootPaths) -> Iterator[str]:
    """Work, busy and overlapped time, and retry waste where attempts are visible."""
    yield '<section class="ledger" data-at="ledger"><h3>Ledger</h3><dl>'
    for key, (word, meaning) in _LEDGER.items():
        size = amount(getattr(paths.ledger, key), key)
        yield f'<div><dt>{word}</dt><dd>{size}</dd><dd class="quiet">{meaning}</dd></div>'
    waste_ns = paths.ledger.retry_waste_ns
    if waste_ns is not None:
        size = amount(waste_ns, "retry_waste_ns")
        meaning = "failed attempts on the path"
        yield f'<div><dt>retry waste</dt><dd>{size}</dd><dd class="quiet">{meaning}</dd></div>'
    yield "</dl></section>"


def draw_spare(paths: RootPaths, trace: Trace, addresses: Mapping[Span, str]) -> Iterator[str]:
    """Operations off the path to the end, the longest first, and how much longer they may be."""
    off = spared(paths, trace)
    if not off:
        return
    yield '<section class="spare"><h3>Off the path to the end</h3><ul>'
    for span in off[:OPEN_SPARE]:
        yield _spare(span, paths.slacks_ns[span], addresses)
    yield "</ul>"
    if len(off) > OPEN_SPARE:
        yield f"<details><summary>{len(off) - OPEN_SPARE:,} more</summary><ul>"
        for span in off[OPEN_SPARE:]:
            yield _spare(span, paths.slacks_ns[span], addresses)
        yield "</ul></details>"
    yield "</section>"


def draw_assumptions(used: Assumptions) -> Iterator[str]:
    """What the result takes for granted."""
    stamps = "the resolution of stamps is found per clock"
    if used.resolution_ns is not None:
        stamps = f"stamps are exact to {amount(used.resolution_ns, 'resolution_ns')}"
    tail = amount(used.tail_ns, "tail_ns")
    yield '<p class="quiet assumed" data-at="assumptions">Assumed: a server may go on for '
    drift = count(used.drift_ppm, "drift_ppm")
    yield f"{tail} after its last output; {stamps}; two clocks part by at most {drift} millionths "
    yield "of the time that passes.</p>"


def _spare(span: Span, slack_ns: int, addresses: Mapping[Span, str]) -> str:
    return f"<li>{named_span(span, addresses.get(span))}, {spare(span, slack_ns)}</li>"
