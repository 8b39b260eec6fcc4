"""What a change of one phase or one operation would have done to the end: re-scheduled.

    start'(c) = max(start'(parent), end'(predecessors)) + the own gap that was observed
    end'(P)   = max(end'(joined)) + the tail that was observed

Subtracting the saved time from the end is wrong wherever something else ran beside it. Queueing,
batching and cache effects are not modelled; a change of decode keeps the token count.

From `reschedule` on, `views/page/reschedule.js` is the same line by line, under the same names.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from llmlat_processor.model import AlignedTrace, Span
from llmlat_processor.schedule import NOBODY, Leaving, Operation, Schedule
from llmlat_processor.stages.critical_path.schedules import schedules
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
    schedule = schedules(aligned).get(root)
    if schedule is None:
        raise ValueError(f"no root of this trace: {root!r}")
    if span_id is not None and all(s.span_id != span_id for s in aligned.trace.operations):
        raise ValueError(f"no operation of this trace: {span_id.hex()}")
    label = phase.value if phase is not None else None
    exact = None if factor is None else Fraction(factor)
    return reschedule(schedule, Change(label, span_id, exact, by_ns))


@dataclass(frozen=True, slots=True)
class Change:
    """What is supposed: a phase, an operation or an operation's phase takes another time.

    Attributes:
        label: the phase; None for an operation as a whole.
        span_id: the operation; None for the phase wherever it is.
        factor: what its time is multiplied by; None where `by_ns` is given.
        by_ns: what is added to its time.
    """

    label: str | None
    span_id: bytes | None
    factor: Fraction | None
    by_ns: int | None

    def is_of(self, operation: Operation) -> bool:
        """Whether the operation is meant, alone or among all."""
        return self.span_id is None or self.span_id == operation.span_id

    def scale(self, total_ns: int) -> Fraction:
        """What is added per nanosecond of a time; it never gets shorter than nothing."""
        if self.factor is not None:
            return self.factor - 1
        return Fraction(max(self.by_ns or 0, -total_ns), total_ns) if total_ns else Fraction(0)


def reschedule(schedule: Schedule, change: Change) -> WhatIf:
    """Schedule a root's operations anew under a change, the innermost first."""
    moved = _Moved(schedule, change)
    for number in range(len(schedule.operations) - 1, -1, -1):
        moved.longer[number] = moved.longer_of(number)
    shift = moved.longer[0]
    saved = sorted((-shift.low, -shift.high))
    return WhatIf(-shift.headline, saved[0], saved[1], schedule.duration_ns + shift.headline)


class _Changing:
    """Where in its own time an operation holds what changes; one budget, however many pieces."""

    def __init__(self, change: Change, pieces: Sequence[tuple[int, int]]) -> None:
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


class _Moved:
    """Shifts of ends relative to starts, by the operation's number."""

    def __init__(self, schedule: Schedule, change: Change) -> None:
        self.operations = schedule.operations
        self.change = change
        self.longer = [STILL] * len(schedule.operations)
        self.changing: dict[int, _Changing] = {}

    def longer_of(self, number: int) -> Shift:
        """By how much an operation takes longer, seen from its own start."""
        operation, change = self.operations[number], self.change
        if change.label is None and change.is_of(operation):
            size = operation.counted_ns
            return _exactly(round(size * change.scale(size)))
        meant = change.label is not None and change.is_of(operation)
        pieces = operation.pieces.get(change.label or "", ()) if meant else ()
        changing = self.changing[number] = _Changing(change, pieces)
        if operation.joined:
            shift = _Siblings(self, operation, changing).end_shift()
        else:
            shift = _exactly(changing.total())
        if operation.callee != NOBODY:
            shift = shift.plus(self.longer[operation.callee])
        return shift

    def shift_at(self, edge: Leaving, shift: Shift) -> Shift:
        """How far the instant moves at which an edge leaves an operation whose end shifts."""
        if edge.clipped is None:
            return shift
        inside = 0
        for number, label, size in edge.clipped:
            if label == self.change.label and self.change.is_of(self.operations[number]):
                inside += round(size * self.changing[number].scale)
        whole = self.longer[edge.sibling]
        return Shift(*(end - all_ + inside for end, all_ in zip(shift, whole, strict=True)))


class _Siblings:
    """Those that one operation waits for, scheduled anew in the order in which they started."""

    def __init__(self, moved: _Moved, parent: Operation, changing: _Changing) -> None:
        self.moved = moved
        self.parent = parent
        self.changing = changing
        self.shifts: dict[int, Shift] = {}
        self._order: list[int] = []
        self._starts: list[int] = []

    def end_shift(self) -> Shift:
        """How far the parent's end moves, seen from its start."""
        operations, ended = self.moved.operations, self.parent.ended
        running = _Running()
        position = 0
        for number in self.parent.joined:
            child = operations[number]
            reach = child.start_ns + self.parent.epsilon_ns
            while position < len(ended) and operations[ended[position]].until_ns <= reach:
                other = ended[position]
                if other in self.shifts:
                    running.add(operations[other].until_ns, self.shifts[other])
                position += 1
            bound, start = running.latest_ns, running.shift()
            if child.before:
                bound, start = self._after_explicit(child)
            gap = self.changing.within(bound, child.start_ns)
            self.shifts[number] = start.plus(_exactly(gap)).plus(self.moved.longer[number])
            self._order.append(number)
            self._starts.append(child.start_ns)
        last = _Running()
        for number in ended:
            last.add(operations[number].until_ns, self.shifts[number])
        tail = self.changing.within(last.latest_ns, self.parent.length_ns)
        return last.exact().plus(_exactly(tail))

    def _after_explicit(self, child: Operation) -> tuple[int, Shift]:
        """Explicit predecessors, and siblings wholly between the last of them and the child."""
        operations = self.moved.operations
        waited = _Running()
        known = [edge for edge in child.before if edge.sibling in self.shifts]
        for edge in known:
            waited.add(edge.at_ns, self.moved.shift_at(edge, self.shifts[edge.sibling]))
        if not known:
            return waited.latest_ns, waited.shift()
        latest = max(edge.at_ns for edge in known)
        awaited = {edge.sibling for edge in known}
        reach = child.start_ns + self.parent.epsilon_ns
        between = [
            other
            for other in self._order[bisect_left(self._starts, latest) :]
            if other not in awaited and operations[other].until_ns <= reach
        ]
        exact = waited.exact()
        for other in between:
            waited.add(operations[other].until_ns, self.shifts[other])
        return waited.latest_ns, waited.shift_among() if between else exact


class _Running:
    """The latest of several instants, before and after they moved; at least the start."""

    def __init__(self) -> None:
        self.latest_ns = 0
        self._moved = [0, 0, 0]
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


def _exactly(amount_ns: int) -> Shift:
    return Shift(amount_ns, amount_ns, amount_ns)
