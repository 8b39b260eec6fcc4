"""Which thread of its process each slice goes on, so that the slices of every thread nest.

Chrome's format draws a slice inside another one of the same thread wherever it lies in it, and
drops or misplaces those that overlap only in part. So a slice goes on its operation's thread only
where all that is open there is above it; what runs beside it gets the first thread that is free:

    thread 1   |invoke_agent                         |
                 |chat          |    |execute_tool  |
                 |send|wait     |
    thread 2     |retrieval        |
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

NOBODY: Final = -1


class Slice(NamedTuple):
    """An interval to be drawn.

    Attributes:
        start_ns: from the root's start.
        end_ns: from the root's start.
        rank: of slices with the same ends, those with a lower rank lie outside.
        of: the operation that it is, or whose phase it is; `NOBODY` nests with nothing.
        above: the operation that it may lie in; `NOBODY` for none.
    """

    start_ns: int
    end_ns: int
    rank: int
    of: int = NOBODY
    above: int = NOBODY

    @property
    def is_phase(self) -> bool:
        """Whether it labels the time of the operation that it lies in."""
        return self.of != NOBODY and self.of == self.above


def outer_first(one: Slice) -> tuple[int, int, int]:
    """Order slices so that each comes after those that it may lie in."""
    return one.start_ns, -one.end_ns, one.rank


def thread_of_each(ordered: Sequence[Slice]) -> list[int]:
    """Give each slice a thread, numbered from 0 without a gap.

    Args:
        ordered: slices in the order of `outer_first`.
    """
    return _Threads(ordered).assigned()


class _Threads:
    """The threads of one process while slices are put on them, in the order of their start."""

    def __init__(self, ordered: Sequence[Slice]) -> None:
        self._ordered = ordered
        self._open: list[list[Slice]] = []
        self._free: list[int] = []
        self._taken: list[tuple[int, int]] = []  # until when, which
        self._thread_of: dict[int, int] = {}
        self._phase_starts: dict[int, list[int]] = {}
        for one in reversed(ordered):  # so that the next one is the last
            if one.is_phase:
                self._phase_starts.setdefault(one.of, []).append(one.start_ns)

    def assigned(self) -> list[int]:
        """The thread of each slice."""
        threads = []
        for one in self._ordered:
            self._release(one.start_ns)
            if one.is_phase:
                self._phase_starts[one.of].pop()
            threads.append(self._thread_for(one))
        return threads

    def _release(self, now_ns: int) -> None:
        while self._taken and self._taken[0][0] <= now_ns:
            _, thread = heappop(self._taken)
            self._open[thread].clear()
            heappush(self._free, thread)

    def _thread_for(self, one: Slice) -> int:
        thread = self._thread_of.get(one.above, NOBODY)
        nests = thread != NOBODY and self._fits(one, self._open[thread])
        if not nests:
            thread = self._next_free(one.end_ns)
        if one.is_phase and not nests:
            one = one._replace(of=NOBODY)  # beside its operation: nothing may lie in it
        self._open[thread].append(one)
        if not one.is_phase and one.of != NOBODY:
            self._thread_of[one.of] = thread
        return thread

    def _fits(self, one: Slice, around: list[Slice]) -> bool:
        """Whether it lies in what it may lie in, and cuts off no phase that is still to come."""
        while around and around[-1].end_ns <= one.start_ns:
            around.pop()
        if not around or around[-1].of != one.above or around[-1].end_ns < one.end_ns:
            return False
        to_come = self._phase_starts.get(one.above)
        return one.is_phase or not to_come or to_come[-1] >= one.end_ns

    def _next_free(self, until_ns: int) -> int:
        if self._free:
            thread = heappop(self._free)
        else:
            thread = len(self._open)
            self._open.append([])
        heappush(self._taken, (until_ns, thread))
        return thread
