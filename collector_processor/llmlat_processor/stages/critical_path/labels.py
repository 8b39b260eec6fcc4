"""Labels of the time that an operation owns: by position, then by what is left, in order.

    owned        ├──────────┤        ├──────────────┤      (children took what is between)
    phase spans     queue████                               by position, inner ones first
    durations    t█          decode██ ███████               fill what is left, in contract order
    the rest                                 ········       work, tool ... or unobserved

Nothing is stretched or split in proportion: what no phase accounts for keeps no phase's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llmlat_processor.facts import CONTRACT_ORDER, Facts, Interval
from llmlat_processor.stages.critical_path.account import Piece
from llmlat_processor.stages.critical_path.tree import Node
from llmlat_semconv.values import Evidence, SectionLabel

Gap = tuple[int, int]
"""A stretch (from, to) that an operation owns, on its own clock."""

Stretch = tuple["SectionLabel | None", Evidence, int, int]
"""(label or None, evidence, from, to)"""


LAST: Final = len(CONTRACT_ORDER) + 1
"""After every phase of the contract."""

_ADMISSION: Final = SectionLabel.ADMISSION
_ROUTE: Final = SectionLabel.ROUTE
_RELAY: Final = SectionLabel.RELAY
_AROUND: Final = {_ADMISSION, _ROUTE, _RELAY}
_DERIVED: Final = Evidence.DERIVED
_MEASURED: Final = Evidence.MEASURED


def label_gaps(
    node: Node, gaps: Sequence[Gap], *, whole: bool, epsilon_ns: int
) -> list[list[Piece]]:
    """Label what an operation owns.

    Args:
        node: an operation.
        gaps: its stretches in time order, not overlapping.
        whole: they are all that it owns; then it is also learned whether durations overflow
            them, and where they put the first and last output.
        epsilon_ns: by how much durations may exceed what they could fill.

    Returns:
        For each gap its pieces, in time order; under no phase a piece has no label yet.
    """
    facts = node.facts
    if facts is None or not facts.has_phases:
        return [[(node, None, _DERIVED, hi - lo)] for lo, hi in gaps]
    rows = _positioned(facts, gaps)
    if facts.durations:
        if whole:
            facts.overflow_ns = _overflow_ns(facts, rows, epsilon_ns)
            if facts.overflow_ns and not node.leaf and _is_put_around(node, facts):
                rows = _positioned(facts, gaps)
                facts.overflow_ns = _overflow_ns(facts, rows, epsilon_ns)
        if not facts.overflow_ns:
            beyond = next((each for each in facts.outer if gaps and each[0] >= gaps[-1][1]), None)
            limit = CONTRACT_ORDER[beyond[2]] if beyond is not None else LAST
            rows = _fill(rows, facts, limit, whole=whole)
            if whole:
                _note_outputs(facts, rows)
    return [[(node, label, ev, hi - lo) for label, ev, lo, hi in row] for row in rows]


def _overflow_ns(facts: Facts, rows: list[list[Stretch]], epsilon_ns: int) -> int:
    free = sum([hi - lo for row in rows for label, _, lo, hi in row if label is None])
    return max(0, sum(facts.durations.values()) - free - epsilon_ns)


# A gateway's phases may have children within: `relay` what its call does after the last event, and
# `admission` whatever was asked to let the request in. Their durations then do not fit what the
# gateway owns itself, and need not: where they lie is known.
#
#   gateway   |admission|route|                          |       relay       |
#   children       ──           call ────────────────────────finalize──


def _is_put_around(node: Node, facts: Facts) -> bool:
    """Give a gateway's durations their places, at its two ends; whether that could be done."""
    waiting = dict(facts.durations)
    if not facts.is_gateway or not waiting.keys() <= _AROUND:
        return False
    places: list[Interval] = []
    at_ns, end_ns = node.start_ns, node.end_ns
    placed = {label: end for _, end, label, _ in facts.outer}
    for label in (_ADMISSION, _ROUTE):
        if label in waiting:
            places.append((at_ns, at_ns + waiting[label], label, _MEASURED))
            at_ns += waiting[label]
        elif label in placed:
            at_ns = placed[label]
        else:
            break  # What comes after it begins nobody knows where.
    if _RELAY in waiting:
        end_ns -= waiting[_RELAY]
        places.append((end_ns, node.end_ns, _RELAY, _MEASURED))
    if len(places) != len(waiting) or at_ns > end_ns:
        return False
    facts.put(places)
    return True


def _positioned(facts: Facts, gaps: Sequence[Gap]) -> list[list[Stretch]]:
    rows: list[list[Stretch]] = [[(None, _DERIVED, lo, hi)] for lo, hi in gaps]
    if facts.nested:
        rows = _cut(rows, facts.nested)
    if facts.outer:
        rows = _cut(rows, facts.outer)
    return rows


def _note_outputs(facts: Facts, rows: list[list[Stretch]]) -> None:
    """Where durations alone tell the first and last output, learn their instants."""
    for row in rows:
        for label, _, _, end in row:
            if label in facts.durations:
                facts.note_output(label, end)


def _cut(rows: list[list[Stretch]], phases: list[Interval]) -> list[list[Stretch]]:
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
            while position < len(phases) and phases[position][1] <= at:
                position += 1
            for number in range(position, len(phases)):
                start, end, label, known_by = phases[number]
                if start >= hi:
                    break
                if start > at:
                    pieces.append((None, evidence, at, start))
                    at = start
                until = min(end, hi)
                pieces.append((label, known_by, at, until))
                at = until
            if at < hi or at == stretch[2]:
                pieces.append((None, evidence, at, hi))
        result.append(pieces)
    return result


def _fill(
    rows: list[list[Stretch]], facts: Facts, limit: int, *, whole: bool
) -> list[list[Stretch]]:
    """Give what is left to durations, in contract order, each before the phases that follow it.

    `limit` is the place in that order of the phase that comes after all of this. Of a whole
    operation what finds no such place is put wherever there is room: it is known to have taken its
    time. Of a clipped one it may lie behind the clip.
    """
    waiting = list(facts.durations.items())[::-1]
    rows = _poured(rows, waiting, _orders_ahead(rows, limit), facts.known_by)
    return _poured(rows, waiting, None, facts.known_by) if whole and waiting else rows


def _orders_ahead(rows: list[list[Stretch]], ahead: int) -> list[int]:
    """Per stretch, the place in the contract's order of the next phase after it."""
    orders: list[int] = []
    for row in reversed(rows):
        for label, _, _, _ in reversed(row):
            ahead = ahead if label is None else CONTRACT_ORDER[label]
            orders.append(ahead)
    return orders


def _poured(
    rows: list[list[Stretch]],
    waiting: list[tuple[SectionLabel, int]],
    orders: list[int] | None,
    known_by: Evidence,
) -> list[list[Stretch]]:
    result = []
    for row in rows:
        pieces: list[Stretch] = []
        for stretch in row:
            limit = orders.pop() if orders is not None else len(CONTRACT_ORDER)
            label, evidence, at, hi = stretch
            if label is not None:
                pieces.append(stretch)
                continue
            while waiting and at < hi and CONTRACT_ORDER[waiting[-1][0]] <= limit:
                filling, size = waiting.pop()
                end = min(hi, at + size)
                pieces.append((filling, known_by, at, end))
                if end - at < size:
                    waiting.append((filling, size - (end - at)))
                at = end
            if at < hi:
                pieces.append((None, evidence, at, hi))
        result.append(pieces)
    return result
