"""Remembers marks of eight bytes each, in about as many bytes, and tells which it has seen."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

_LOOSE: Final = 4_096


class Marks:
    """Marks in sorted runs, each longer than the next one.

    So what goes on for ever does not have all its marks moved for each new one.
    """

    __slots__ = ("runs",)

    def __init__(self, marks: Iterable[int] = ()) -> None:
        first = array("q", sorted(marks))
        self.runs = [first] if first else []

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def __contains__(self, mark: int) -> bool:
        return any(_is_in(run, mark) for run in self.runs)

    def add(self, *marks: int) -> None:
        """Remember more, which need not be in order."""
        run = array("q", sorted(marks))
        while self.runs and len(self.runs[-1]) <= len(run):
            run = array("q", sorted([*self.runs.pop(), *run]))
        self.runs.append(run)


def _is_in(run: array[int], mark: int) -> bool:
    place = bisect_left(run, mark)
    return place < len(run) and run[place] == mark


class Generations:
    """The latest of any number of marks: at least half of the limit, at most all of it."""

    def __init__(self, limit: int) -> None:
        """Remember at most so many."""
        self._half = limit // 2
        self._loose: set[int] = set()
        self._young = Marks()
        self._old = Marks()

    def __len__(self) -> int:
        return len(self._loose) + len(self._young) + len(self._old)

    def __contains__(self, mark: int) -> bool:
        return mark in self._loose or mark in self._young or mark in self._old

    def add(self, mark: int) -> None:
        """Remember one, and forget the oldest half where that is too many."""
        if not self._half:
            return
        self._loose.add(mark)
        is_grown = len(self._loose) + len(self._young) >= self._half
        if is_grown or len(self._loose) >= _LOOSE:
            self._young.add(*self._loose)
            self._loose.clear()
        if is_grown:
            self._old, self._young = self._young, Marks()
