"""What can be set of the processor, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from llmlat_processor.window import MIB, SECOND_NS, Limits

WATCHED: Final = Limits(hold_max_ns=600 * SECOND_NS)
"""For watching a copy of the spans: nobody waits for them, so a long agent is held to its end."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a receiving processor.

    Attributes:
        window: when traces are let go, and how much is held.
        max_message_bytes: largest request that is accepted, after decompression.
        waiting_bytes: most that may wait to be looked at; above it exporters are asked to retry.
        tick_s: how often, in seconds, the window is asked for what is complete.
    """

    window: Limits = field(default_factory=lambda: WATCHED)
    max_message_bytes: int = 64 * MIB
    waiting_bytes: int = 64 * MIB
    tick_s: float = 0.25
