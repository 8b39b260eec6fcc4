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
from llmlat_processor.offsets import between, shifted, widened
from llmlat_processor.stages.critical_path.calls import is_one_way
from llmlat_processor.stages.critical_path.tree import Node, Play, Tree

MOST_ALTERNATIVES: Final = 16
"""Of one path: it is ambiguous after the first."""

_BY_START_AND_ID = attrgetter("start_ns", "span.span_id")
_START: Final[Callable[[Node], int]] = attrgetter("start_ns")
_END: Final[Callable[[Node], int]] = attrgetter("end_ns")


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
            found[Alternative(pair[0].span.span_id, pair[1].span.span_id)] = None
            if len(found) == MOST_ALTERNATIVES:
                return tuple(found)
    return tuple(found)


class _Siblings:
    """Operations by where they start and by where they end."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._by_start = sorted(nodes, key=_START)
        self._by_end = sorted(self._by_start, key=_END)

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
    end its start may cross, or whose end its end may.
    """
    early_ns, late_ns = child.play if child.play is not None else (0, 0)
    if child.end_ns - early_ns <= parent.end_ns < child.end_ns + late_ns:
        yield parent
    start, end = child.start_ns, child.end_ns
    for other in chain(
        siblings.starting(end - early_ns, end + late_ns),
        siblings.ending(start - early_ns, start + late_ns),
        siblings.ending(end - early_ns, end + late_ns),
    ):
        if other is not child and _order(child, other, -early_ns) != _order(child, other, late_ns):
            yield other


def _order(child: Node, other: Node, moved_ns: int) -> tuple[bool, bool, bool]:
    """What the walk asks of two siblings."""
    start_ns, end_ns = child.start_ns + moved_ns, child.end_ns + moved_ns
    return (end_ns <= other.start_ns, other.end_ns <= start_ns, end_ns > other.end_ns)
