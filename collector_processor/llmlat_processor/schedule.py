"""The schedule of one root: who waited for whom, and where in it the phases lie.

A plain value, made from the aligned trace once. A what-if is answered from it alone, by the same
rules in Python and in the page's script.

    A  ├───────────────────────────┤        every instant counts from the start of the operation
    b     ├───────┤                         that waits: A's own pieces and b, c from A's start,
    c                ├────────┤             b's own pieces from b's start
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

NOBODY: Final = -1
"""In place of an operation's index."""


class Clipped(NamedTuple):
    """How much of a phase of an operation lies before an instant."""

    operation: int
    label: str
    size_ns: int


class Leaving(NamedTuple):
    """An explicit predecessor: the edge leaves it at an instant.

    Attributes:
        sibling: the predecessor, or the one that holds it.
        at_ns: the instant.
        clipped: phases before that instant; None where it is at or after the sibling's end.
    """

    sibling: int
    at_ns: int
    clipped: tuple[Clipped, ...] | None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as the schedule knows it; others are named by their index.

    Attributes:
        span_id: of its span; a caller and its callee may share one.
        start_ns: where it starts.
        until_ns: where it ends for the one that waits for it.
        length_ns: its own end, from its own start.
        counted_ns: how much of it somebody can wait for.
        epsilon_ns: tolerance between the stamps of those that it waits for.
        joined: those that it waits for, in the order of their starts.
        ended: the same in the order of their ends.
        before: what it says that it waited for.
        callee: whose time stands in place of its waiting.
        pieces: per phase, the stretches of its own time under it, in time order.
    """

    span_id: bytes
    start_ns: int
    until_ns: int
    length_ns: int
    counted_ns: int
    epsilon_ns: int
    joined: tuple[int, ...]
    ended: tuple[int, ...]
    before: tuple[Leaving, ...]
    callee: int
    pieces: Mapping[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The operations of one root, the root first and each before those below it."""

    operations: tuple[Operation, ...]

    @property
    def duration_ns(self) -> int:
        """How long the root takes as it was."""
        return self.operations[0].length_ns
