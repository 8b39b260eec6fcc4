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

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile
from operator import attrgetter
from typing import Final

from llmlat_processor.model import Alternative, Interval
from llmlat_processor.offsets import Offsets, shifted, widened
from llmlat_processor.stages.critical_path.calls import is_one_way
from llmlat_processor.stages.critical_path.tree import Node, Play, Tree

MOST_ALTERNATIVES: Final = 16
"""Of one path: it is ambiguous after the first."""

_BY_START_AND_ID = attrgetter("start_ns", "span.span_id")
_STILL: Final = Play(0, 0)
_START: Final[Callable[[Node], int]] = attrgetter("start_ns")
_END: Final[Callable[[Node], int]] = attrgetter("end_ns")


def place_remote_children(tree: Tree) -> None:
    """Put the children of another clock domain on their parent's clock where that is possible."""
    clocks, trace = tree.aligned.clocks, tree.aligned.trace
    if len(clocks.offsets) < 2:
        return
    offsets = Offsets(clocks.limits_ns, clocks.potentials_ns)
    longest_ns = max((trace.operations[root].duration_ns for root in trace.roots), default=0)
    drift_ns = longest_ns * trace.assumptions.drift_ppm // 1_000_000
    stand_ins = {trace.operations[position] for position in trace.stand_ins}
    for parent in tree.order:
        if parent.call is not None or parent.span in stand_ins:
            continue
        if any(not child.remote for child in parent.children):
            for child in parent.children:
                if child.foreign and not is_one_way(child):
                    looked_at = offsets.steps
                    known = offsets.between(parent.domain, child.domain)
                    if not tree.afford(offsets.steps - looked_at):
                        return
                    _place(tree, widened(known, drift_ns), parent, child)
            parent.children.sort(key=_BY_START_AND_ID)


def _place(tree: Tree, offset: Interval, parent: Node, child: Node) -> None:
    """Both are compared on the parent's own clock, wherever that has been put meanwhile."""
    low, high = offset
    if low is None and high is None:
        return  # its clock contradicts itself, or is one of too many
    parent_ns = parent.start_ns - parent.moved_ns
    latest_ns = child.start_ns - parent_ns  # it began after its parent, however late
    high = latest_ns if high is None else min(high, latest_ns)
    low = None if low is None else min(low, high)
    shift = (child.span.start_ns - child.start_ns) - (parent.span.start_ns - parent_ns)
    offset_ns = _nearest_to_zero(shifted(Interval(low, high), shift)) - shift
    later_ns = latest_ns - offset_ns
    later_ns = parent.end_ns - parent.start_ns - later_ns if low is None else offset_ns - low
    child.play = Play(high - offset_ns, max(0, later_ns))
    child.foreign = False
    tree.placed.append(child)
    moved = [child]
    for node in moved:
        node.move(parent.moved_ns - offset_ns)
        moved += [below for below in node.children if below.domain == child.domain]


def _nearest_to_zero(interval: Interval) -> int:
    low, high = interval
    nearest = 0 if high is None else min(0, high)
    return nearest if low is None else max(nearest, low)


def alternatives(tree: Tree, on_path: Container[Node]) -> tuple[Alternative, ...]:
    """Where another feasible offset would have led a path elsewhere; at most so many are told."""
    found: dict[Alternative, None] = {}
    siblings: dict[Node, tuple[_Siblings, _Siblings]] = {}
    for child in tree.placed:
        parent = child.parent
        if parent is None or parent not in on_path:
            continue
        if parent not in siblings:
            near = [other for other in parent.children if not other.foreign]
            passed = [other for other in near if other in on_path]
            siblings[parent] = (_Siblings(near), _Siblings(passed))
        is_on_path = child in on_path
        every, passed_by = siblings[parent]
        for other in _others(parent, child, every if is_on_path else passed_by):
            pair = (child, other) if is_on_path else (other, child)
            told = Alternative(pair[0].span.span_id, pair[1].span.span_id)
            if Alternative(told.other, told.entered) not in found:
                found[told] = None
            if len(found) == MOST_ALTERNATIVES:
                return tuple(found)
    return tuple(found)


class _Siblings:
    """Operations by where they start and by where they end.

    Attributes:
        most: how much earlier and later any of them may have been.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._by_start = sorted(nodes, key=_START)
        self._by_end = sorted(self._by_start, key=_END)
        plays = [node.play for node in self._by_start if node.play is not None]
        self.most = Play(
            max((play.earlier_ns for play in plays), default=0),
            max((play.later_ns for play in plays), default=0),
        )

    def starting(self, from_ns: int, to_ns: int) -> Iterator[Node]:
        """Those that start between two instants, both included."""
        return _between(self._by_start, from_ns, to_ns, _START)

    def ending(self, from_ns: int, to_ns: int) -> Iterator[Node]:
        """Those that end between two instants, both included."""
        return _between(self._by_end, from_ns, to_ns, _END)


def _between(
    nodes: Sequence[Node], from_ns: int, to_ns: int, key: Callable[[Node], int]
) -> Iterator[Node]:
    first = bisect_left(nodes, from_ns, key=key)
    return takewhile(lambda node: key(node) <= to_ns, islice(nodes, first, None))


def _others(parent: Node, child: Node, siblings: _Siblings) -> Iterator[Node]:
    """Those against which a child, moved as far as it may be, stands in another order.

    That is the parent, which may have ended before it; and whose start its end may cross, whose
    end its start may cross, or whose end its end may. Two that were placed by one offset move
    together; of two others each may move.
    """
    early_ns, late_ns = child.play if child.play is not None else _STILL
    if child.end_ns - early_ns <= parent.end_ns < child.end_ns + late_ns:
        yield parent
    start, end = child.start_ns, child.end_ns
    sooner, later = early_ns + siblings.most.later_ns, late_ns + siblings.most.earlier_ns
    for other in chain(
        siblings.starting(end - sooner, end + later),
        siblings.ending(start - sooner, start + later),
        siblings.ending(end - sooner, end + later),
    ):
        if other is child or (other.play is not None and other.domain == child.domain):
            continue
        earlier_ns, later_ns = other.play if other.play is not None else _STILL
        first, last = -early_ns - later_ns, late_ns + earlier_ns
        if _order(child, other, first) != _order(child, other, last):
            yield other


def _order(child: Node, other: Node, moved_ns: int) -> tuple[bool, bool, bool]:
    """What the walk asks of two siblings."""
    start_ns, end_ns = child.start_ns + moved_ns, child.end_ns + moved_ns
    return (end_ns <= other.start_ns, other.end_ns <= start_ns, end_ns > other.end_ns)
