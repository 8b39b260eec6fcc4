"""Decoding: a model's own loop that picks tokens, timed where it goes round; pure.

    entered   first token   each round   last token
       │  prefill  │           decode        │

Entered is when a loop has all its inputs and nothing else to wait for. A round is over when its
tokens are there, and not when they are on their way: on a device that works by itself that is known
only once the loop has asked whether to go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from llmlat_otel.core.engine_timeline import Mark, Outputs, phases_of
from llmlat_otel.core.recording import PhaseInterval
from llmlat_semconv import attributes as names


class Picks(Enum):
    """What one round of a loop picks."""

    TOKENS = "one token for each row"
    DRAFTED = "those tokens of a draft that hold, for one row"
    BEAMS = "candidates, of which the result has few"


class Loop(NamedTuple):
    """A loop as it is entered.

    Attributes:
        picks: What a round picks.
        rows: Sequences in one forward pass.
        width: Tokens that each row has by now.
        criteria: What is asked, after each round, which rows are done.
        is_on_host: Whether the model computes where we run, so that what is picked is there.
        computed: Of a row's prompt, the tokens that the first pass computes; None if not known.
        cached: Of a row's prompt, the tokens that a cache holds already; None if not known.
    """

    picks: Picks
    rows: int
    width: int
    criteria: object
    is_on_host: bool
    computed: int | None = None
    cached: int | None = None


class Mask(Protocol):
    """A truth or a number for each row, as a library has it; its sum may wait for a device."""

    def __or__(self, other: Mask, /) -> Mask: ...

    def __add__(self, other: Mask, /) -> Mask: ...

    def __mul__(self, other: int, /) -> Mask: ...

    def sum(self) -> object:
        """Of all rows; `int` of it waits."""


class _Picked(NamedTuple):
    """What has been picked: how wide the rows are, in how many rounds, and which got nothing."""

    width: int
    rounds: int = 0
    idle: Mask | None = None


class Decoding:
    """One run of a loop.

    Args:
        loop: As it is entered.
        entered_ns: When that is.

    Attributes:
        first_ns: When its first token was there.
        is_stopped: Whether the criteria have raised an exception.
    """

    __slots__ = (
        "_asked_ns",
        "_done",
        "_entered_ns",
        "_is_going_round",
        "_is_last",
        "_last_ns",
        "_loop",
        "_picked",
        "_picking",
        "_rounds",
        "first_ns",
        "is_stopped",
    )

    def __init__(self, loop: Loop, entered_ns: int) -> None:
        self._loop = loop
        self._entered_ns = entered_ns
        self._picking = self._picked = _Picked(loop.width)
        self._done: Mask | None = None
        self._rounds = 0
        self._asked_ns: int | None = None
        self._last_ns: int | None = None
        self._is_going_round = self._is_last = False
        self.first_ns: int | None = None
        self.is_stopped = False

    # As it goes round

    def asked(self, criteria: object, width: int, at_ns: int) -> None:
        """Which rows are done is asked; they are as wide as this now."""
        loop, (_, rounds, idle) = self._loop, self._picking
        if criteria is not loop.criteria:
            return
        # With a draft it may be asked of what is only proposed: the round tells.
        if loop.is_on_host and loop.picks is not Picks.DRAFTED:
            self._asked_ns = at_ns
        if self._done is not None:
            idle = self._done * 1 if idle is None else idle + self._done
        self._picking = _Picked(width, rounds + 1, idle)

    def answered(self, criteria: object, done: Mask) -> None:
        """These rows are done; one that was stays so. Nothing waits for a device here."""
        if criteria is self._loop.criteria and self._loop.rows > 1:
            self._done = done if self._done is None else self._done | done

    def stopped(self, criteria: object) -> None:
        """The criteria have raised an exception: the caller's way to stop in the middle."""
        self.is_stopped = self.is_stopped or criteria is self._loop.criteria

    def went_round(self, at_ns: int, *, is_last: bool) -> None:
        """It has asked whether to go on, which it does before its first round as well.

        Args:
            at_ns: When that was answered.
            is_last: Whether it has picked its last; if it goes on, then for the sake of others.
        """
        if self._is_going_round and not self._is_last:
            self._settle(at_ns if self._asked_ns is None else self._asked_ns)
        self._is_going_round, self._is_last = True, self._is_last or is_last

    def given_up(self) -> None:
        """It goes round no more; what was picked was picked."""
        if self._asked_ns is not None:
            self._settle(self._asked_ns)

    def _settle(self, at_ns: int) -> None:
        self._asked_ns, self._last_ns = None, at_ns
        self._rounds += 1
        self._picked = self._picking
        if self.first_ns is None:
            self.first_ns = at_ns

    # What it comes to

    def phases(self, given_up_ns: int | None) -> tuple[PhaseInterval, ...]:
        """Its phases.

        Args:
            given_up_ns: When it was given up, if it was.
        """
        stamps = [(Mark.SCHEDULED, self._entered_ns)]
        return phases_of(stamps, Outputs(self.first_ns, self._last_ns), given_up_ns)

    def facts(self) -> Mapping[str, int]:
        """What it has computed, in tokens and rounds, as far as that is known at once."""
        loop = self._loop
        facts = {names.LLMLAT_BATCH_SIZE_MAX: loop.rows}
        if loop.computed is not None:
            facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] = loop.rows * loop.computed
        if loop.cached is not None:
            facts[names.LLMLAT_PREFILL_CACHED_TOKENS] = loop.rows * loop.cached
        if self._rounds:
            facts[names.LLMLAT_DECODE_STEPS] = self._rounds - 1
        return facts

    def tokens_after_the_first(self) -> int | None:
        """Tokens after the first of each row, to where it was done; None where nothing tells.

        With several rows this waits for the device.
        """
        loop, (width, rounds, idle) = self._loop, self._picked
        if loop.picks is Picks.BEAMS or not rounds:
            return None
        if loop.rows == 1:
            return width - loop.width - 1
        return loop.rows * (rounds - 1) - (0 if idle is None else _number(idle.sum()))


def _number(tensor: object) -> int:
    return int(tensor)  # type: ignore[call-overload,no-any-return]
