"""What is known of the clocks of a trace: messages between them, and what these prove.

θ of an ordered pair of domains is the clock of the second minus the clock of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple


class Message(NamedTuple):
    """Something left one clock domain and arrived in another, and did not arrive before it left.

        sender    ──●──────────────      left_ns, on the sender's clock
                     ╲
        receiver  ────●────────────      arrived_ns, on the receiver's

    So θ = clock of the receiver - clock of the sender is at most `limit_ns` (Cristian 1989; Mills,
    RFC 5905 section 8: no midpoint is taken here). A request bounds it from above, the answer to it
    is a message the other way and bounds it from below.

    Attributes:
        left_ns: the sender's edge, on its domain's clock.
        arrived_ns: the receiver's edge, on its domain's clock.
        epsilon_ns: granted for the resolution of both clocks.
        tail_ns: granted where the sender's edge is its last output or the end of its span, which
            may come later than the output did.
        drift_ns: by how much θ may have changed between the start of the trace and this message.
        left: id of the span that has the sender's edge.
        arrived: id of the span that has the receiver's edge.
    """

    sender: str
    receiver: str
    left_ns: int
    arrived_ns: int
    epsilon_ns: int
    tail_ns: int
    drift_ns: int
    left: bytes
    arrived: bytes

    @property
    def bound_ns(self) -> int:
        """The most that the receiver's clock can be ahead, at any instant between both edges."""
        return self.arrived_ns - self.left_ns + self.epsilon_ns + self.tail_ns

    @property
    def limit_ns(self) -> int:
        """The most that the receiver's clock can be ahead of the sender's at the trace's start."""
        _, _, left, arrived, epsilon, tail, drift, _, _ = self  # once per message and more: hot
        return arrived - left + epsilon + tail + drift


class Interval(NamedTuple):
    """What θ can be, in nanoseconds, both ends included; None where nothing bounds it."""

    low_ns: int | None
    high_ns: int | None


UNKNOWN: Final = Interval(None, None)


@dataclass(frozen=True, slots=True)
class Offset:
    """One domain's clock against that of the trace's first root, at the root's start.

    Attributes:
        domain: whose clock.
        interval: of clock of this domain - clock of the root's domain.
        wall: the same of what their wall clocks say, as the anchors of their first spans have it;
            equal to `interval` where neither tells its monotonic clock.
        messages: how many messages this domain sent to others or received from them.
    """

    domain: str
    interval: Interval
    wall: Interval
    messages: int


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of one trace.

    Attributes:
        reference: domain of the first root; empty where there is none.
        offsets: per domain, in order of appearance, the reference first.
        messages: all that the spans tell of but those of a call that contradicts itself; together
            they need not be consistent.
        limits_ns: per ordered pair (sender, receiver) with consistent messages the least limit.
        potentials_ns: per domain of these an offset, such that together they satisfy all limits.
        left_out: domains beyond those whose offsets are computed: nothing is said of them.
    """

    reference: str = ""
    offsets: Mapping[str, Offset] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    limits_ns: Mapping[tuple[str, str], int] = field(default_factory=dict)
    potentials_ns: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0


NO_CLOCKS: Final = Clocks()
