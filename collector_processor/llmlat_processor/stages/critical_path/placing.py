"""Remote children of an operation that also worked itself, placed by what their clock allows.

    agent   ├──────────────────────────────────────┤
    local      ├────────┤
    remote                 ├╌╌╌┬──────────┬╌╌┤            ╌ where else its offset may put it
                               nearest to 0

A call's callee needs no place: it is exchanged by durations. Of these children nobody knows what
waited for them but from where they stand, so the order is only possible, and ambiguous where the
interval could change it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import islice
from operator import attrgetter
from typing import Final

from llmlat_processor.model import Alternative, Interval
from llmlat_processor.offsets import between, shifted, widened
from llmlat_processor.stages.critical_path.calls import is_one_way
from llmlat_processor.stages.critical_path.tree import Node, Play, Tree

MOST_ALTERNATIVES: Final = 16
"""Of one path: it is ambiguous after the first."""

_BY_START_AND_ID = attrgetter("start_ns", "span.span_id")


def place_remote_children(tree: Tree) -> None:
    """Put the children of another clock domain on their parent's clock where that is possible."""
    if len(tree.aligned.clocks.offsets) < 2:
        return
    offsets = _Offsets(tree)
    for parent in tree.order:
        if parent.call is None and any(not child.remote for child in parent.children):
            for child in parent.children:
                if child.foreign and not is_one_way(child):
                    _place(tree, offsets, parent, child)
            parent.children.sort(key=_BY_START_AND_ID)


class _Offsets:
    """Offsets between two domains, each found once."""

    def __init__(self, tree: Tree) -> None:
        self._clocks = tree.aligned.clocks
        self._known: dict[tuple[str, str], Interval] = {}
        trace = tree.aligned.trace
        longest_ns = max((trace.operations[root].duration_ns for root in trace.roots), default=0)
        self._drift_ns = longest_ns * trace.assumptions.drift_ppm // 1_000_000

    def between(self, parent: Node, child: Node) -> Interval:
        """What the clock of a child may be ahead of its parent's, at any time in the trace."""
        pair = (parent.domain, child.domain)
        if pair not in self._known:
            self._known[pair] = widened(between(self._clocks, *pair), self._drift_ns)
        return self._known[pair]


def _place(tree: Tree, offsets: _Offsets, parent: Node, child: Node) -> None:
    low, high = offsets.between(parent, child)
    if low is None and high is None:
        return  # its clock contradicts itself, or is one of too many
    latest_ns = child.start_ns - parent.start_ns  # it began after its parent, however late
    high = latest_ns if high is None else min(high, latest_ns)
    low = None if low is None else min(low, high)
    shift = (child.span.start_ns - child.start_ns) - (parent.span.start_ns - parent.start_ns)
    offset_ns = _nearest_to_zero(shifted(Interval(low, high), shift)) - shift
    later_ns = parent.end_ns - (child.start_ns - offset_ns) if low is None else offset_ns - low
    child.play = Play(high - offset_ns, max(0, later_ns))
    child.foreign = False
    tree.placed.append(child)
    moved = [child]
    for node in moved:
        node.move(-offset_ns)
        moved += [below for below in node.children if below.domain == child.domain]


def _nearest_to_zero(interval: Interval) -> int:
    low, high = interval
    nearest = 0 if high is None else min(0, high)
    return nearest if low is None else max(nearest, low)


def alternatives(tree: Tree, on_path: Container[Node]) -> tuple[Alternative, ...]:
    """Where another feasible offset would have led a path elsewhere."""
    return tuple(islice(dict.fromkeys(_alternatives(tree, on_path)), MOST_ALTERNATIVES))


def _alternatives(tree: Tree, on_path: Container[Node]) -> Iterator[Alternative]:
    for child in tree.placed:
        parent = child.parent
        if parent is None or parent not in on_path or child.play is None:
            continue
        if not tree.afford(len(parent.children)):
            return
        is_on_path = child in on_path
        early_ns, late_ns = child.play
        if child.end_ns - early_ns <= parent.end_ns < child.end_ns + late_ns:
            pair = (child, parent) if is_on_path else (parent, child)
            yield Alternative(pair[0].span.span_id, pair[1].span.span_id)
        for other in parent.children:
            if other is child or other.foreign or not (is_on_path or other in on_path):
                continue
            if _order(child, other, -early_ns) != _order(child, other, late_ns):
                pair = (child, other) if is_on_path else (other, child)
                yield Alternative(pair[0].span.span_id, pair[1].span.span_id)


def _order(child: Node, other: Node, moved_ns: int) -> tuple[bool, bool, bool]:
    """What the walk asks of two siblings."""
    start_ns, end_ns = child.start_ns + moved_ns, child.end_ns + moved_ns
    return (end_ns <= other.start_ns, other.end_ns <= start_ns, end_ns > other.end_ns)
