"""Rows of the waterfall: operations as a tree, and what is known of their phases under each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from llmlat_processor.model import Section, Span
from llmlat_processor.views.waterfall.placement import Band, Placement, Stretch
from llmlat_semconv.attributes import LLMLAT_PHASE_EVIDENCE, LLMLAT_PHASE_NAME
from llmlat_semconv.values import Evidence, SectionLabel

# The whole time of a leaf, under the one label that its operation already says.
_SAID_BY_THE_OPERATION: Final = frozenset(
    label.value
    for label in (
        SectionLabel.WORK,
        SectionLabel.TOOL,
        SectionLabel.RETRIEVAL,
        SectionLabel.HUMAN_WAIT,
    )
)

RAILS: Final = 12
"""Levels of the tree that are drawn; above them an operation's ancestors are only hinted at."""

SMALLEST_SHARE: Final = 0.005
"""Phases shorter than this part of the root are counted, not drawn."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the waterfall.

    Attributes:
        span: the operation; of a phase row, the one whose time it labels.
        depth: how many operations are above the operation, up to the root.
        rails: for each level below the root, whether a later sibling follows; the last is
            the row's own level, and only the last `RAILS` + 1 are kept. A phase row has those
            of its operation, and whether a child operation follows.
        name: of the operation; of a phase, its label.
        service: of an operation, where it differs from its parent's; else empty.
        is_phase: True for a phase row.
        is_error: True for an operation that failed.
        duration_ns: what the span says; of a phase without a span, its time on the path.
        evidence: how a phase is known; None for an operation.
        stretches: where it is drawn, later ones on top; empty where it has no place.
        band: where an operation of another clock can have been; None where nobody knows.
    """

    span: Span
    depth: int
    rails: tuple[bool, ...]
    name: str
    service: str
    is_phase: bool
    is_error: bool
    duration_ns: int
    evidence: Evidence | None
    on_e2e: bool
    on_ttft: bool
    stretches: tuple[Stretch, ...]
    band: Band | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """What is drawn, and how much is not."""

    drawn: tuple[Row, ...]
    hidden_operations: int
    hidden_phases: int


def rows_of(placed: Placement, limit: int | None) -> Rows:
    """Lay the tree out, at most `limit` operations of it (None: all, with every phase).

    Over the limit operations on a path stay first, then the longest; an operation is drawn
    only with all above it.
    """
    chosen, total = _chosen(placed, limit)
    shortest = 0 if limit is None else placed.operation(placed.root).duration_ns * SMALLEST_SHARE
    drawn: list[Row] = []
    hidden_phases = 0
    for at in _walk(placed, chosen):
        drawn.append(_operation_row(placed, at))
        has_children = any(child in chosen for child in placed.children.get(at.number, ()))
        phases = _phase_rows(placed, at, has_children)
        kept = [row for row in phases if row.duration_ns >= shortest]
        drawn.extend(kept)
        hidden_phases += len(phases) - len(kept)
    return Rows(tuple(drawn), total - len(chosen), hidden_phases)


def _chosen(placed: Placement, limit: int | None) -> tuple[set[int], int]:
    everything = [placed.root]
    for index in everything:
        everything.extend(placed.children.get(index, ()))
    if limit is None or len(everything) <= limit:
        return set(everything), len(everything)
    chosen: set[int] = {placed.root}
    for index in sorted(everything, key=lambda i: _importance(placed, i)):
        room = limit - len(chosen)
        lineage = _lineage(placed, index, chosen, room)
        if len(lineage) <= room:
            chosen.update(lineage)
    return chosen, len(everything)


def _importance(placed: Placement, index: int) -> tuple[bool, int, int]:
    span = placed.operation(index)
    return not (placed.on_e2e(span) or placed.on_ttft(span)), -span.duration_ns, index


def _lineage(placed: Placement, index: int, chosen: set[int], room: int) -> list[int]:
    """The operation and those above it that are not chosen yet; given up past `room`."""
    missing: list[int] = []
    while index not in chosen and len(missing) <= room:
        missing.append(index)
        index = placed.parent(index)
    return missing


class _Place(NamedTuple):
    """An operation in the tree."""

    number: int
    depth: int
    rails: tuple[bool, ...]


def _walk(placed: Placement, chosen: set[int]) -> Iterator[_Place]:
    """Depth first, without recursion: traces can be deeper than Python's stack."""
    stack = [_Place(placed.root, 0, ())]
    while stack:
        place = stack.pop()
        yield place
        children = [child for child in placed.children.get(place.number, ()) if child in chosen]
        last, below = len(children) - 1, place.depth + 1
        near = place.rails[-RAILS:]
        places = [_Place(child, below, (*near, at < last)) for at, child in enumerate(children)]
        stack += reversed(places)


def _operation_row(placed: Placement, at: _Place) -> Row:
    index = at.number
    span = placed.operation(index)
    above = placed.parent(index) if index != placed.root else -1
    repeats = above >= 0 and placed.operation(above).resource.service == span.resource.service
    return Row(
        span=span,
        depth=at.depth,
        rails=at.rails,
        name=span.name,
        service="" if repeats else span.resource.service,
        is_phase=False,
        is_error=span.is_error,
        duration_ns=span.duration_ns,
        evidence=None,
        on_e2e=placed.on_e2e(span),
        on_ttft=placed.on_ttft(span),
        stretches=(*placed.own_stretch(index), *placed.path_stretches(span)),
        band=placed.band(index),
    )


def _phase_rows(placed: Placement, at: _Place, has_children: bool) -> list[Row]:
    """One row a label: the phase spans of that name and the sections under it, taken together."""
    index = at.number
    place = at._replace(rails=(*at.rails, has_children))
    span = placed.operation(index)
    e2e, ttft = placed.e2e.get(span, ()), placed.ttft.get(span, ())
    spans: dict[str, list[int]] = {}
    for position, phase in enumerate(placed.phases(index)):
        spans.setdefault(_phase_name(phase), []).append(position)
    labels = dict.fromkeys([*spans, *(section.label.value for section in (*e2e, *ttft))])
    rows = [
        _phase_row(placed, place, label, spans.get(label, ()))
        for label in labels
        if label in spans or label not in _SAID_BY_THE_OPERATION
    ]
    return sorted(rows, key=lambda row: min((s.start_ns for s in row.stretches), default=0))


def _phase_row(placed: Placement, at: _Place, label: str, positions: Sequence[int]) -> Row:
    index = at.number
    span = placed.operation(index)
    phases = [placed.phases(index)[position] for position in positions]
    e2e = [one for one in placed.e2e.get(span, ()) if one.label.value == label]
    ttft = [one for one in placed.ttft.get(span, ()) if one.label.value == label]
    raw = [one for position in positions for one in placed.phase_stretch(index, position)]
    return Row(
        span=span,
        depth=at.depth,
        rails=at.rails,
        name=label,
        service="",
        is_phase=True,
        is_error=False,
        duration_ns=sum(one.duration_ns for one in phases or e2e or ttft),
        evidence=_evidence(phases, e2e or ttft),
        on_e2e=bool(e2e),
        on_ttft=bool(ttft),
        stretches=(*raw, *placed.path_stretches(span, label)),
    )


def _phase_name(phase: Span) -> str:
    return str(phase.attributes.get(LLMLAT_PHASE_NAME, phase.name))


def _evidence(phases: Sequence[Span], sections: Sequence[Section]) -> Evidence:
    """As the phase span says; else as the path took it."""
    if not phases:
        return sections[0].evidence
    said = phases[0].attributes.get(LLMLAT_PHASE_EVIDENCE)
    return Evidence(said) if said in tuple(Evidence) else Evidence.MEASURED
