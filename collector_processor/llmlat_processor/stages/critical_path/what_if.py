"""What a change of one phase or one operation would have done to the end: re-scheduled.

    start'(c) = max(start'(parent), end'(predecessors)) + the own gap that was observed
    end'(P)   = max(end'(joined)) + the tail that was observed

Subtracting the saved time from the end is wrong wherever something else ran beside it. Queueing,
batching and cache effects are not modelled; a change of decode keeps the token count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
            negative factor, or a root that is not of this trace.
    """
    if (factor is None) == (by_ns is None):
        raise ValueError("give either a factor or an amount")
    if phase is None and span_id is None:
        raise ValueError("name a phase or an operation")
    if factor is not None and factor < 0:
        raise ValueError(f"a factor cannot be negative: {factor}")
    tree = explained_tree(aligned)
    top = next((node for node in tree.roots if node.span is root), None)
    if top is None:
        raise ValueError(f"no root of this trace: {root!r}")
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

    def amount(self, size_ns: int) -> int:
        """What is added to a time; it never gets shorter than nothing."""
        if self.factor is not None:
            return round(size_ns * (self.factor - 1))
        return max(self.by_ns or 0, -size_ns) if size_ns else 0


class _Schedule:
    """Shifts of ends relative to starts, the innermost operations first."""

    def __init__(self, tree: Tree, change: _Change) -> None:
        self.tree = tree
        self.change = change
        self.longer: dict[Node, Shift] = {}

    def end_shift(self, root: Node) -> Shift:
        """How far the root's end moves."""
        for node in reversed(subtree(root)):
            self.longer[node] = self._longer(node)
        return self.longer[root]

    def _longer(self, node: Node) -> Shift:
        """By how much an operation takes longer, seen from its own start."""
        if self.change.of_operation(node):
            return _exactly(self.change.amount(_counted_ns(node)))
        pieces = self._own_pieces(node)
        if node.joined:
            shift = self._rescheduled(node, pieces)
        else:
            shift = _exactly(self.change.amount(sum(end - start for start, end in pieces)))
        call = node.call
        if call is not None and call.callee is not None and not call.rejected:
            shift = shift.plus(self.longer.get(call.callee, STILL))
        return shift

    def _own_pieces(self, node: Node) -> list[tuple[int, int]]:
        """Where in its own time an operation holds what changes."""
        if self.change.label is None:
            return []
        account = node.output or node.account or walk_whole(self.tree, node)
        pieces = []
        at_ns, end_ns = node.start_ns, node.start_ns + account.total_ns
        for part in account.parts if isinstance(account, Account) else account.account.parts:
            after_ns = at_ns + length(part)
            if isinstance(part, tuple) and part[0] is node and self.change.of_piece(part):
                pieces.append((at_ns, min(after_ns, end_ns)))
            at_ns = min(after_ns, end_ns)
        return pieces

    def _rescheduled(self, parent: Node, pieces: Sequence[tuple[int, int]]) -> Shift:
        epsilon = self.tree.epsilon_ns(parent)
        ended = sorted(parent.joined, key=attrgetter("until_ns"))
        shifts: dict[Node, Shift] = {}
        running = _Running(parent.start_ns)
        position = 0
        for child in sorted(parent.joined, key=attrgetter("start_ns", "until_ns", "span.span_id")):
            while position < len(ended) and ended[position].until_ns <= child.start_ns + epsilon:
                other = ended[position]
                if other in shifts:
                    running.add(other.until_ns, shifts[other])
                position += 1
            if child.before:
                bound, start = self._after_explicit(parent, child, shifts, epsilon)
            else:
                bound, start = running.latest_ns, running.shift()
            gap = self._changed_within(pieces, bound, child.start_ns)
            shifts[child] = start.plus(_exactly(gap)).plus(self.longer.get(child, STILL))
        last = _Running(parent.start_ns)
        for child in ended:
            last.add(child.until_ns, shifts[child])
        tail = self._changed_within(pieces, last.latest_ns, parent.end_ns)
        return last.exact().plus(_exactly(tail))

    def _after_explicit(
        self, parent: Node, child: Node, shifts: dict[Node, Shift], epsilon: int
    ) -> tuple[int, Shift]:
        """Explicit predecessors, and siblings wholly between the last of them and the child."""
        waited = _Running(parent.start_ns)
        known = [edge for edge in child.before or () if edge.chain[0] in shifts]
        for edge in known:
            waited.add(edge.at_ns, self._shift_at(edge, shifts))
        latest = max((edge.at_ns for edge in known), default=parent.start_ns)
        awaited = {edge.chain[0] for edge in known}
        between = [
            other
            for other in shifts
            if other not in awaited
            and other.start_ns >= latest
            and other.until_ns <= child.start_ns + epsilon
        ]
        if not known:
            return waited.latest_ns, waited.shift()
        exact = waited.exact()
        for other in between:
            waited.add(other.until_ns, shifts[other])
        return waited.latest_ns, waited.shift_among() if between else exact

    def _shift_at(self, edge: Before, shifts: dict[Node, Shift]) -> Shift:
        """How far the instant moves at which an edge leaves its operation."""
        sibling = edge.chain[0]
        if edge.at_ns >= sibling.until_ns:
            return shifts[sibling]
        clipped = Walk(self.tree, frames_down(edge.chain, edge.at_ns, Extent.FIRST)).run()
        inside = self._matching(flatten(clipped))
        whole = self.longer.get(sibling, STILL)
        return Shift(
            *(end - all_ + inside for end, all_ in zip(shifts[sibling], whole, strict=True))
        )

    def _matching(self, pieces: Iterable[Piece]) -> int:
        return self.change.amount(sum(piece[3] for piece in pieces if self.change.of_piece(piece)))

    def _changed_within(self, pieces: Sequence[tuple[int, int]], from_ns: int, to_ns: int) -> int:
        inside = sum(
            max(0, min(end, to_ns) - max(start, from_ns))
            for start, end in pieces
            if start < to_ns and end > from_ns
        )
        return self.change.amount(inside)


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
