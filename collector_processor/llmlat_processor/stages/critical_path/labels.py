"""Labels of the time that an operation owns: by position, then by what is left, in order.

owned        ├──────────┤        ├──────────────┤      (children took what is between)
phase spans     queue████                               by position, inner ones first
durations    t█          decode██ ███████               fill what is left in contract order
the rest                                 ········       work, tool ... or unobserved
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from llmlat_processor.stages.critical_path.account import Piece
from llmlat_processor.stages.critical_path.facts import PhaseInterval
from llmlat_processor.stages.critical_path.tree import Node
from llmlat_semconv.values import Evidence, SectionLabel

Gap = tuple[int, int]
"""A stretch (from, to) that an operation owns, on its own clock."""

Stretch = tuple["SectionLabel | None", Evidence, int, int]
"""(label or None, evidence, from, to)"""


def label_gaps(node: Node, gaps: Sequence[Gap]) -> list[list[Piece]]:
    """Label what an operation owns.

    Args:
        node: an operation.
        gaps: its stretches in time order, not overlapping.

    Returns:
        For each gap its pieces, in time order; under no phase a piece has no label yet.
    """
    rows = _positioned(node, gaps)
    facts = node.facts
    if facts is not None and facts.durations and not facts.overflowed:
        rows = _fill(rows, facts.durations)
    return [[(node, label, ev, hi - lo) for label, ev, lo, hi in row] for row in rows]


def overflow_ns(node: Node, gaps: Sequence[Gap]) -> int:
    """By how much an operation's duration-only phases exceed what they could fill."""
    facts = node.facts
    if facts is None or not facts.durations:
        return 0
    rows = _positioned(node, gaps)
    free = sum(hi - lo for row in rows for label, _, lo, hi in row if label is None)
    return sum(facts.durations.values()) - free


def _positioned(node: Node, gaps: Sequence[Gap]) -> list[list[Stretch]]:
    facts = node.facts
    rows: list[list[Stretch]] = [[(None, Evidence.DERIVED, lo, hi)] for lo, hi in gaps]
    if facts is not None and facts.nested:
        rows = _cut(rows, facts.nested)
    if facts is not None and facts.outer:
        rows = _cut(rows, facts.outer)
    return rows


def note_outputs(node: Node, gaps: Sequence[Gap], rows: Iterable[Sequence[Piece]]) -> None:
    """Where durations alone tell the first and last output, learn their instants."""
    facts = node.facts
    if facts is None or not facts.durations:
        return
    for (start, _), row in zip(gaps, rows, strict=True):
        at_ns = start
        for _, label, _, size in row:
            at_ns += size
            if label in facts.durations:
                facts.note_output(label, at_ns)


def _cut(rows: list[list[Stretch]], phases: Sequence[PhaseInterval]) -> list[list[Stretch]]:
    """Give unlabelled stretches the phases that lie over them; both run forward in time."""
    position = 0
    result = []
    for row in rows:
        pieces: list[Stretch] = []
        for stretch in row:
            if stretch[0] is not None:
                pieces.append(stretch)
                continue
            _, evidence, at, hi = stretch
            while position < len(phases) and phases[position].end_ns <= at:
                position += 1
            ahead = position
            while ahead < len(phases) and phases[ahead].start_ns < hi:
                phase = phases[ahead]
                start, end = max(at, phase.start_ns), min(hi, phase.end_ns)
                if start > at:
                    pieces.append((None, evidence, at, start))
                pieces.append((phase.label, phase.evidence, start, end))
                at = end
                ahead += 1
            if at < hi or at == stretch[2]:
                pieces.append((None, evidence, at, hi))
        result.append(pieces)
    return result


def _fill(rows: list[list[Stretch]], durations: Mapping[SectionLabel, int]) -> list[list[Stretch]]:
    waiting = list(durations.items())[::-1]
    result = []
    for row in rows:
        pieces: list[Stretch] = []
        for stretch in row:
            if stretch[0] is not None:
                pieces.append(stretch)
                continue
            _, evidence, at, hi = stretch
            while waiting and at < hi:
                label, size = waiting.pop()
                end = min(hi, at + size)
                pieces.append((label, Evidence.MEASURED, at, end))
                if end - at < size:
                    waiting.append((label, size - (end - at)))
                at = end
            if at < hi:
                pieces.append((None, evidence, at, hi))
        result.append(pieces)
    return result
