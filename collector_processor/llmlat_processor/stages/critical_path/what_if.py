"""What a change of one phase or one operation would have done to the end: re-scheduled.

    start'(c) = max(start'(parent), end'(predecessors)) + the own gap that was observed
    end'(P)   = max(end'(joined)) + the tail that was observed

Subtracting the saved time from the end is wrong wherever something else ran beside it. Queueing,
batching and cache effects are not modelled; a change of decode keeps the token count.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from llmlat_processor.model import AlignedTrace, Span
from llmlat_processor.stages.critical_path.account import Account, Piece, flatten, length
from llmlat_processor.stages.critical_path.paths import explained_tree
from llmlat_processor.stages.critical_path.sink import subtree
from llmlat_processor.stages.critical_path.tree import Before, Node, Tree
from llmlat_processor.stages.critical_path.walk import Extent, Walk, frames_down, walk_whole
from llmlat_semconv.phases import Phase


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answer for one root, in nanoseconds.

    Attributes:
        saves_ns: how much earlier the end would have come, if each sibling waited for all that
            had ended (explicit edges where there are some).
        saves_low_ns: the least for any order of waiting that the data allows.
        saves_high_ns: the most.
        duration_ns: the root's new duration.
    """

    saves_ns: int
    saves_low_ns: int
    saves_high_ns: int
    duration_ns: int


class Shift(NamedTuple):
    """How far an instant moves: by the headline rule, at least and at most."""

    headline: int
    low: int
    high: int

    def plus(self, other: Shift) -> Shift:
        """Both, one after the other."""
        return Shift(*(one + two for one, two in zip(self, other, strict=True)))


STILL = Shift(0, 0, 0)


def what_if(
    aligned: AlignedTrace,
    root: Span,
    *,
    phase: Phase | None = None,
    span_id: bytes | None = None,
    factor: float | None = None,
    by_ns: int | None = None,
) -> WhatIf:
    """Re-schedule one root's operations under a change.

    Args:
        aligned: the trace.
        root: the root whose end is asked for.
        phase: which phase changes; None for a whole operation.
        span_id: whose phase, or which operation; None for that phase wherever it is.
        factor: what its time is multiplied by (>= 0) ...
        by_ns: ... or how many nanoseconds are added to it.

    Raises:
        ValueError: neither or both of `factor` and `by_ns`, neither phase nor operation, a
            factor that is none, or a root or operation that is not of this trace.
    """
    if (factor is None) == (by_ns is None):
        raise ValueError("give either a factor or an amount")
    if phase is None and span_id is None:
        raise ValueError("name a phase or an operation")
    if factor is not None and not 0 <= factor < math.inf:
        raise ValueError(f"a factor is a finite number and never negative: {factor}")
    tree = explained_tree(aligned)
    top = next((node for node in tree.roots if node.span is root), None)
    if top is None:
        raise ValueError(f"no root of this trace: {root!r}")
    if span_id is not None and all(s.span_id != span_id for s in aligned.trace.operations):
        raise ValueError(f"no operation of this trace: {span_id.hex()}")
    label = phase.value if phase is not None else None
    change = _Change(label, span_id, None if factor is None else Fraction(factor), by_ns)
    moved = _Schedule(tree, change).end_shift(top)
    saved = sorted((-moved.low, -moved.high))
    return WhatIf(-moved.headline, saved[0], saved[1], top.end_ns - top.start_ns + moved.headline)


@dataclass(frozen=True, slots=True)
class _Change:
    label: str | None
    span_id: bytes | None
    factor: Fraction | None
    by_ns: int | None

    def of_operation(self, node: Node) -> bool:
        return self.label is None and node.span.span_id == self.span_id

    def of_piece(self, piece: Piece) -> bool:
        node, label, _, _ = piece
        if self.label is None or label is None or label.value != self.label:
            return False
        return self.span_id is None or node.span.span_id == self.span_id

    def scale(self, total_ns: int) -> Fraction:
        """What is added per nanosecond of a time; it never gets shorter than nothing."""
        if self.factor is not None:
            return self.factor - 1
        return Fraction(max(self.by_ns or 0, -total_ns), total_ns) if total_ns else Fraction(0)


class _Changing:
    """Where in its own time an operation holds what changes; one budget, however many pieces."""

    def __init__(self, change: _Change, pieces: Sequence[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in pieces]
        self._ends = [end for _, end in pieces]
        self._before = [0, *accumulate(end - start for start, end in pieces)]
        self.scale = change.scale(self._before[-1])

    def total(self) -> int:
        """What is added in all."""
        return round(self._before[-1] * self.scale)

    def within(self, from_ns: int, to_ns: int) -> int:
        """What is added between two instants; over adjoining ones these add up to the total."""
        return self._up_to(to_ns) - self._up_to(from_ns) if from_ns < to_ns else 0

    def _up_to(self, at_ns: int) -> int:
        passed = bisect_right(self._ends, at_ns)
        size = self._before[passed]
        if passed < len(self._starts) and self._starts[passed] < at_ns:
            size += at_ns - self._starts[passed]
        return round(size * self.scale)


class _Schedule:
    """Shifts of ends relative to starts, the innermost operations first."""

    def __init__(self, tree: Tree, change: _Change) -> None:
        self.tree = tree
        self.change = change
        self.longer: dict[Node, Shift] = {}
        self.changing: dict[Node, _Changing] = {}

    def end_shift(self, root: Node) -> Shift:
        """How far the root's end moves."""
        for node in reversed(subtree(root)):
            self.longer[node] = self._longer(node)
        return self.longer[root]

    def _longer(self, node: Node) -> Shift:
        """By how much an operation takes longer, seen from its own start."""
        if self.change.of_operation(node):
            size = _counted_ns(node)
            return _exactly(round(size * self.change.scale(size)))
        changing = self.changing[node] = _Changing(self.change, self._own_pieces(node))
        if node.joined:
            shift = _Siblings(self, node, changing).end_shift()
        else:
            shift = _exactly(changing.total())
        call = node.call
        if call is not None and call.callee is not None and not call.rejected:
            shift = shift.plus(self.longer.get(call.callee, STILL))
        return shift

    def _own_pieces(self, node: Node) -> list[tuple[int, int]]:
        if self.change.label is None:
            return []
        account = node.output or node.account or walk_whole(self.tree, node)
        pieces = []
        at_ns, end_ns = node.start_ns, node.start_ns + account.total_ns
        for part in account.parts if isinstance(account, Account) else account.account.parts:
            after_ns = min(at_ns + length(part), end_ns)
            if isinstance(part, tuple) and part[0] is node and self.change.of_piece(part):
                pieces.append((at_ns, after_ns))
            at_ns = after_ns
        return pieces

    def shift_at(self, edge: Before, shift: Shift) -> Shift:
        """How far the instant moves at which an edge leaves an operation whose end shifts."""
        sibling = edge.chain[0]
        if edge.at_ns >= sibling.until_ns:
            return shift
        clipped = Walk(self.tree, frames_down(edge.chain, edge.at_ns, Extent.FIRST)).run()
        sizes: dict[Node, int] = {}
        for piece in flatten(clipped):
            if self.change.of_piece(piece):
                sizes[piece[0]] = sizes.get(piece[0], 0) + piece[3]
        inside = sum(round(size * self.changing[node].scale) for node, size in sizes.items())
        whole = self.longer.get(sibling, STILL)
        return Shift(*(end - all_ + inside for end, all_ in zip(shift, whole, strict=True)))


class _Siblings:
    """The joined operations of one parent, scheduled anew in the order in which they started."""

    def __init__(self, schedule: _Schedule, parent: Node, changing: _Changing) -> None:
        self.schedule = schedule
        self.parent = parent
        self.changing = changing
        self.epsilon = schedule.tree.epsilon_ns(parent)
        self.shifts: dict[Node, Shift] = {}
        self._order: list[Node] = []
        self._starts: list[int] = []

    def end_shift(self) -> Shift:
        """How far the parent's end moves, seen from its start."""
        ended = sorted(self.parent.joined, key=attrgetter("until_ns"))
        running = _Running(self.parent.start_ns)
        position = 0
        for child in sorted(ended, key=attrgetter("start_ns", "until_ns", "span.span_id")):
            reach = child.start_ns + self.epsilon
            while position < len(ended) and ended[position].until_ns <= reach:
                other = ended[position]
                if other in self.shifts:
                    running.add(other.until_ns, self.shifts[other])
                position += 1
            bound, start = running.latest_ns, running.shift()
            if child.before:
                bound, start = self._after_explicit(child)
            gap = self.changing.within(bound, child.start_ns)
            longer = self.schedule.longer.get(child, STILL)
            self.shifts[child] = start.plus(_exactly(gap)).plus(longer)
            self._order.append(child)
            self._starts.append(child.start_ns)
        last = _Running(self.parent.start_ns)
        for child in ended:
            last.add(child.until_ns, self.shifts[child])
        tail = self.changing.within(last.latest_ns, self.parent.end_ns)
        return last.exact().plus(_exactly(tail))

    def _after_explicit(self, child: Node) -> tuple[int, Shift]:
        """Explicit predecessors, and siblings wholly between the last of them and the child."""
        waited = _Running(self.parent.start_ns)
        known = [edge for edge in child.before or () if edge.chain[0] in self.shifts]
        for edge in known:
            shift = self.shifts[edge.chain[0]]
            waited.add(edge.at_ns, self.schedule.shift_at(edge, shift))
        if not known:
            return waited.latest_ns, waited.shift()
        latest = max(edge.at_ns for edge in known)
        awaited = {edge.chain[0] for edge in known}
        between = [
            other
            for other in self._order[bisect_left(self._starts, latest) :]
            if other not in awaited and other.until_ns <= child.start_ns + self.epsilon
        ]
        exact = waited.exact()
        for other in between:
            waited.add(other.until_ns, self.shifts[other])
        return waited.latest_ns, waited.shift_among() if between else exact


class _Running:
    """The latest of several instants, before and after they moved."""

    def __init__(self, start_ns: int) -> None:
        self.latest_ns = start_ns
        self._moved = [start_ns, start_ns, start_ns]
        self._low: int | None = None
        self._high: int | None = None

    def add(self, at_ns: int, shift: Shift) -> None:
        """One more instant that is waited for."""
        self.latest_ns = max(self.latest_ns, at_ns)
        self._moved = [max(m, at_ns + s) for m, s in zip(self._moved, shift, strict=True)]
        self._low = shift.low if self._low is None else min(self._low, shift.low)
        self._high = shift.high if self._high is None else max(self._high, shift.high)

    def exact(self) -> Shift:
        """All are known to be waited for: their latest, at each bound."""
        return Shift(*(moved - self.latest_ns for moved in self._moved))

    def shift_among(self) -> Shift:
        """Some of them are waited for: anything between the smallest and the largest shift."""
        return Shift(self._moved[0] - self.latest_ns, self._low or 0, self._high or 0)

    def shift(self) -> Shift:
        """Any of them, or none but the parent, is waited for."""
        return Shift(
            self._moved[0] - self.latest_ns, min(0, self._low or 0), max(0, self._high or 0)
        )


def _counted_ns(node: Node) -> int:
    """How much of an operation somebody can wait for: a callee's up to its last output."""
    if node.output is not None:
        return node.output.total_ns
    parent = node.parent
    if parent is None or node.foreign:
        return node.end_ns - node.start_ns
    return max(0, node.until_ns - max(node.start_ns, parent.start_ns))


def _exactly(amount_ns: int) -> Shift:
    return Shift(amount_ns, amount_ns, amount_ns)
