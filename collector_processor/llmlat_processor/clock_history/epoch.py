"""What is known of a pair of clocks since they last stepped: the two newest windows of time.

Windows begin at multiples of their length, and a bound is compared with those of its own window
only. So what a window proves does not depend on the order in which traces came: no bound goes
because of an older one that goes itself later on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from llmlat_processor.clock_history.cones import Bound, Cones
from llmlat_processor.clock_history.evidence import (
    Contradiction,
    Evidence,
    contradictions,
    interval_at,
)
from llmlat_processor.clock_history.rates import rates
from llmlat_processor.clock_history.settings import HistorySettings
from llmlat_processor.model import Interval
from llmlat_processor.model.clock_history import Stretch

LIVE: Final = 2
"""Windows that are kept: the newest, and the one before it, for what comes late."""


class Window:
    """The evidence of one window of time."""

    __slots__ = ("evidence", "number", "traces")

    def __init__(self, number: int, evidence: Evidence) -> None:
        self.number = number
        self.evidence = evidence
        self.traces = 0


class Epoch:
    """Windows between two steps.

    Attributes:
        number: how many steps there were before.
        since_ns: the earliest instant that is known to be after the last of them.
        until_ns: the latest that is known to be before the next one, where there was one.
        seconds: of each side one bound that tells nothing beside the tightest, of another trace:
            a second opinion, for when the tightest is contradicted.
    """

    __slots__ = ("number", "seconds", "settings", "since_ns", "until_ns", "windows")

    def __init__(self, number: int, since_ns: int, settings: HistorySettings) -> None:
        """Begin, with no evidence."""
        self.number = number
        self.since_ns = since_ns
        self.until_ns = since_ns
        self.seconds: tuple[Bound | None, Bound | None] = (None, None)
        self.settings = settings
        self.windows: list[Window] = []  # oldest first

    def interval(self, at_ns: int) -> Interval:
        """What θ can be at an instant."""
        return interval_at((window.evidence for window in self.windows), at_ns)

    def contradictions(self, evidence: Evidence) -> Iterator[Contradiction]:
        """What of a trace is excluded by what is known."""
        for window in self.windows:
            yield from contradictions(evidence, window.evidence)

    def excluded(self, evidence: Evidence) -> Iterator[Contradiction]:
        """What of all that is known is excluded by a trace."""
        for window in self.windows:
            yield from contradictions(window.evidence, evidence)
        second = Evidence(self.settings.drift_ppm)
        for cones, bound in zip((second.above, second.below), self.seconds, strict=True):
            if bound is not None:
                cones.add(bound)
        yield from contradictions(second, evidence)

    def is_behind(self, evidence: Evidence) -> bool:
        """Whether all that a trace tells is older than the windows that are kept."""
        if not self.windows:
            return False
        return self._number(evidence.newest_ns) <= self.windows[-1].number - LIVE

    def learn(self, evidence: Evidence) -> list[Window]:
        """Add what a trace tells that contradicts nothing; the windows that had to go for it."""
        if self.is_behind(evidence):
            return []
        shares = self._shares(evidence)
        newest = max([*shares, *(window.number for window in self.windows)])
        for number, sides in shares.items():
            if number > newest - LIVE:
                self._add(self._window(number), sides)
        # All are counted where their trace ends: what each window had of it is not worth the room.
        self._window(max(shares)).evidence.messages += evidence.messages
        gone = [window for window in self.windows if window.number <= newest - LIVE]
        self.windows = [window for window in self.windows if window.number > newest - LIVE]
        return gone

    def end(self, until_ns: int) -> list[Window]:
        """Close it, as of the latest instant that is known to be in it; the windows that go.

        What was proved later may be of after the step already, though it contradicted nothing.
        """
        self.until_ns = until_ns
        self.seconds = (None, None)
        for window in self.windows:
            window.evidence.above.drop_after(until_ns)
            window.evidence.below.drop_after(until_ns)
        windows = [window for window in self.windows if window.evidence.instants_ns()]
        self.windows = windows[-1:]
        return windows[:-1]

    def drop_trace(self, trace_id: bytes) -> None:
        """Forget what one trace proved."""
        for window in self.windows:
            window.evidence.above.drop_trace(trace_id)
            window.evidence.below.drop_trace(trace_id)
        above, below = (
            None if bound is None or bound.trace == trace_id else bound for bound in self.seconds
        )
        self.seconds = (above, below)
        self.windows = [window for window in self.windows if window.evidence.instants_ns()]

    def stretch(self, first: str, second: str, window: Window) -> Stretch:
        """What a window proves, one that is kept or one that had to go."""
        evidence, length_ns = window.evidence, self.settings.window_ns
        around = [one.evidence for one in self.windows if one is not window] + [evidence]
        at_ns = min(evidence.instants_ns(), key=lambda at: (*_width(interval_at(around, at)), at))
        fitting = rates(evidence.above.points(), evidence.below.points(), self.settings.drift_ppm)
        interval = interval_at(around, at_ns)
        return Stretch(
            first,
            second,
            self.number,
            window.number * length_ns,
            (window.number + 1) * length_ns,
            at_ns,
            interval,
            None if fitting is None else _within(interval, fitting.interval(at_ns)),
            None if fitting is None else fitting.drift,
            evidence.messages,
            window.traces,
        )

    def _number(self, at_ns: int) -> int:
        return at_ns // self.settings.window_ns

    def _window(self, number: int) -> Window:
        for window in self.windows:
            if window.number == number:
                return window
        window = Window(number, Evidence(self.settings.drift_ppm))
        self.windows = sorted([*self.windows, window], key=lambda each: each.number)
        return window

    def _shares(self, evidence: Evidence) -> dict[int, tuple[list[Bound], list[Bound]]]:
        """What a trace tells, by the number of the window."""
        shares: dict[int, tuple[list[Bound], list[Bound]]] = {}
        for side, cones in enumerate((evidence.above, evidence.below)):
            for bound in cones:
                shares.setdefault(self._number(bound.at_ns), ([], []))[side].append(bound)
        return shares

    def _add(self, window: Window, sides: tuple[list[Bound], list[Bound]]) -> None:
        window.traces += 1
        evidence, most = window.evidence, self.settings.bounds
        self.seconds = (
            _add_all(evidence.above, sides[0], most, self.seconds[0]),
            _add_all(evidence.below, sides[1], most, self.seconds[1]),
        )


def _add_all(
    cones: Cones, bounds: Sequence[Bound], most: int, second: Bound | None
) -> Bound | None:
    """Add bounds; of two traces at one instant the looser one is the second opinion now.

    Unless the one that there was is tighter, the drift since then granted.
    """
    for bound in bounds:
        before = cones.tightest_at(bound.at_ns)
        cones.add(bound, most)
        if before is None or before.trace == bound.trace:
            continue
        looser = before if cones.tightest_at(bound.at_ns) == bound else bound
        if second is None or not cones.dominates(second, looser):
            second = looser
    return second


def _width(interval: Interval) -> tuple[bool, int]:
    """Narrow ones first, those with an open end last."""
    low_ns, high_ns = interval
    is_open = low_ns is None or high_ns is None
    return (is_open, 0 if low_ns is None or high_ns is None else high_ns - low_ns)


def _within(one: Interval, other: Interval) -> Interval | None:
    """What both allow; None where that is nothing."""
    lows = [low_ns for low_ns, _ in (one, other) if low_ns is not None]
    highs = [high_ns for _, high_ns in (one, other) if high_ns is not None]
    both = Interval(max(lows, default=None), min(highs, default=None))
    return None if lows and highs and max(lows) > min(highs) else both
