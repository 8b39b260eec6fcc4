"""What can be set of the processor, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from llmlat_processor.window import MIB, SECOND_NS, Limits

KIB: Final = 1 << 10

WATCHED: Final = Limits(hold_max_ns=600 * SECOND_NS)
"""For watching a copy of the spans: nobody waits for them, so a long agent is held to its end."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """How spans are sent on.

    Attributes:
        request_bytes: largest request that is sent; servers refuse more than 4 MiB by default.
        queue_bytes: what waits to be sent; from there on nothing more is accepted.
        deadline_s: how long the destination may take to answer, in seconds.
        first_retry_s: pause before a request is sent again, in seconds; it grows with each time.
        longest_retry_s: longest such pause, unless the destination asks for a longer one.
        give_up_s: how long a request is sent again and again before its spans are dropped.
        drain_s: how long the end waits for what is still to be sent, in seconds.
    """

    request_bytes: int = 4 * MIB - 64 * KIB
    queue_bytes: int = 64 * MIB
    deadline_s: float = 10
    first_retry_s: float = 0.5
    longest_retry_s: float = 5
    give_up_s: float = 300
    drain_s: float = 10


@dataclass(frozen=True, slots=True)
class Views:
    """What is added to a trace beside the attributes of its operations.

    Attributes:
        lane: its critical path as spans.
        jaeger_warnings: its findings as warnings of the spans that they are about, in the form
            that Jaeger shows as such.
    """

    lane: bool = True
    jaeger_warnings: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a receiving processor.

    Attributes:
        window: when traces are let go, and how much is held.
        max_message_bytes: largest request that is accepted, after decompression.
        waiting_bytes: most that may wait to be looked at; above it exporters are asked to retry.
        tick_s: how often, in seconds, the window is asked for what is complete.
        delivery: how spans are sent on, where they are.
        views: what is added to them.
    """

    window: Limits = field(default_factory=lambda: WATCHED)
    max_message_bytes: int = 64 * MIB
    waiting_bytes: int = 64 * MIB
    tick_s: float = 0.25
    delivery: Delivery = Delivery()
    views: Views = Views()


INLINE: Final = Settings(window=Limits())
"""For what stands in the way of the spans: somebody waits for them at the other end."""
