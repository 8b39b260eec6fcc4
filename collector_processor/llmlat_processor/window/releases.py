"""What the window lets go, why, and the books of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from llmlat_processor.model import Span


class Why(Enum):
    """Why spans were let go."""

    COMPLETE = "complete"
    HELD_LONGEST = "held_longest"
    NO_ROOM = "no_room"
    SHUTDOWN = "shutdown"
    LATE = "late"
    REPEATED = "repeated"
    COLLAPSED = "collapsed"
    TRACE_FULL = "trace_full"
    TOO_LARGE = "too_large"
    REVISED = "revised"


NEVER_HELD: Final = frozenset(
    {Why.LATE, Why.REPEATED, Why.COLLAPSED, Why.TRACE_FULL, Why.TOO_LARGE}
)
"""These spans go without their trace: they came too late, or there was no room for them."""

WITHOUT_ROOM: Final = (Why.TRACE_FULL, Why.TOO_LARGE, Why.COLLAPSED)


@dataclass(frozen=True, slots=True)
class Released:
    """Spans of one trace, in the order in which they came.

    Attributes:
        spans: first the skeletons of what was let go before, then what is let go now.
        why: what ended their stay.
        missing: how many more of this trace did not fit and were let go before.
        already: how many of the spans are skeletons: they were let go before, and are here only
            so that the whole trace can be explained.
        late: how many spans have come since the last account of this trace was published; of a
            revision they are the last of its spans.
        revision: the number of an account that is made of this.
        packed: skeletons of what is let go now, of a trace whose root has still to come;
            `Window.restore` takes them back after a restart.
        last_ns: when the last span of a trace came, by the clock of the window; 0 where it was
            not held.
    """

    spans: Sequence[Span]
    why: Why
    missing: int = 0
    already: int = 0
    late: int = 0
    revision: int = 1
    packed: bytes = b""
    last_ns: int = 0

    @property
    def fresh(self) -> Sequence[Span]:
        """The spans that are let go now; every span is among them once."""
        return self.spans[self.already :] if self.already else self.spans


@dataclass(frozen=True, slots=True)
class Books:
    """Every span that was fed, accounted for: received = released + held.

    Attributes:
        received: spans that were fed.
        released: those that were let go, by reason.
        held: those that were not yet.
        forgotten: skeletons that were needed still and had to be forgotten; their spans had been
            let go long before.
    """

    received: int
    released: Mapping[Why, int]
    held: int
    forgotten: int = 0
