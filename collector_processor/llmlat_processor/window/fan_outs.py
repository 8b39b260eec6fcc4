"""Which leaves of a trace that is too large may go without changing what is explained of it.

    parent  ───────────────────────────────        the walk comes from the end: c, then a, since
      a  ├──────────┤                              it ended last before c began
      b     ├────────┤                             b and d are equal to them and hidden: d may go;
      c                 ├──────────────┤           b stays, for a and c do not cover its end
      d                      ├──────┤

What stays are spans that were received, so a path that goes through them names them. Together
they cover the very time that all of them did: the union of their intervals is exact. One span in
place of a union would not do: the walk goes from one of them to another that ended before it began,
and what lies between two of those is the parent's own time, though a third one was at work.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from llmlat_processor.model import CONSUMER, PRODUCER, Span
from llmlat_processor.relations import joined_ids

SMALLEST: Final = 16
"""Fewer equal leaves are no fan-out."""

_TOLERANCES_NS: Final = (0, 1_000, 1_000_000)
"""How far apart two stamps of a clock may be and be one instant: what clocks can resolve."""

_BY_START: Final = attrgetter("start_ns", "span_id")
_BY_END: Final = attrgetter("end_ns")

_Key = tuple[str, int, int, str, bool, int]


def surplus(
    spans: Sequence[Span], parents: Collection[bytes] = (), *, foresees: bool = True
) -> set[Span]:
    """Leaves that are equal to others and hidden behind them.

    Args:
        spans: what is held of one trace.
        parents: ids of further spans' parents, which are no leaves.
        foresees: keep as well what a path may go through that enters by leaves still to come;
            without it such a path may find some time with the parent that a leaf was at work in.

    Returns:
        Those that may go. A child of one of them that comes later has lost its parent.
    """
    named = {*parents, *_named(spans)}
    by_id = {span.span_id: span for span in spans}
    families: dict[bytes, list[Span]] = {}
    for span in spans:
        families.setdefault(span.parent_id, []).append(span)
    return {
        leaf
        for parent_id, children in families.items()
        if parent_id and len(children) >= SMALLEST
        for leaf in _hidden(children, by_id.get(parent_id), named, foresees)
    }


def _named(spans: Iterable[Span]) -> Iterator[bytes]:
    """Ids of which something is said: as a parent, in a link, as what was waited for."""
    for span in spans:
        yield span.parent_id
        for link in span.links:
            yield link.span_id
        if span.events:
            yield from joined_ids(span)


def _hidden(
    children: Sequence[Span], parent: Span | None, named: Collection[bytes], foresees: bool
) -> set[Span]:
    groups: dict[_Key, list[Span]] = {}
    for span in children:
        if _is_plain_leaf(span, parent, named):
            groups.setdefault(_key(span), []).append(span)
    fan_outs = [group for group in groups.values() if len(group) >= SMALLEST]
    if not fan_outs:
        return set()
    seen = set(_walked(children, _horizon_ns(fan_outs) if foresees else None))
    hidden = set()
    for group in fan_outs:
        hidden.update(set(group).difference(seen, _cover(group)))
    return hidden


def _is_plain_leaf(span: Span, parent: Span | None, named: Collection[bytes]) -> bool:
    """Whether it says nothing of itself, nobody speaks of it, and its parent waits for it."""
    if span.attributes or span.events or span.links or span.span_id in named:
        return False
    if span.kind in (PRODUCER, CONSUMER) or span.end_ns < span.start_ns:
        return False
    return parent is None or (
        span.resource is parent.resource
        and parent.start_ns <= span.start_ns <= parent.end_ns
        and span.end_ns <= parent.end_ns
    )


def _key(span: Span) -> _Key:
    return span.name, span.kind, id(span.resource), span.scope, span.is_error, span.flags


def _horizon_ns(fan_outs: Iterable[Sequence[Span]]) -> int:
    """From where on leaves that are still to come may begin, if they are like those that came.

    Spans come as they end, so the next ones end last of all; hardly one is longer than nearly all
    others were.
    """
    leaves = [leaf for group in fan_outs for leaf in group]
    lengths = sorted(leaf.end_ns - leaf.start_ns for leaf in leaves)
    return max(leaf.end_ns for leaf in leaves) - lengths[len(lengths) * 99 // 100]


def _walked(children: Sequence[Span], horizon_ns: int | None) -> Iterator[Span]:
    """The children that a walk back may enter.

    It comes from the end, or from where one begins that speaks or, after the horizon, any other.
    """
    latest_first = sorted(children, key=_BY_START)
    latest_first.sort(key=_BY_END, reverse=True)
    ends = [-span.end_ns for span in latest_first]
    speaking = [span for span in children if span.attributes][:SMALLEST]
    instants = {at_ns for span in speaking for at_ns in (span.start_ns, span.end_ns)}
    for tolerance_ns in _TOLERANCES_NS:
        recent = bisect_left(ends, -horizon_ns) if horizon_ns is not None else 0
        entries = {*range(recent + 1)}
        entries.update(bisect_left(ends, -at_ns - tolerance_ns) for at_ns in instants)
        seen: set[int] = set()
        for entry in entries:
            place = entry
            while place < len(ends) and place not in seen:
                seen.add(place)
                span = latest_first[place]
                yield span
                place = max(place + 1, bisect_left(ends, -span.start_ns - tolerance_ns))


def _cover(group: Iterable[Span]) -> Iterator[Span]:
    """As few spans as cover what all of them do."""
    covered_ns, best = -1, None
    for span in sorted(group, key=_BY_START):
        if span.start_ns > covered_ns and best is not None:
            yield best
            covered_ns, best = best.end_ns, None
        if span.end_ns > covered_ns and (best is None or span.end_ns > best.end_ns):
            best = span
    if best is not None:
        yield best
