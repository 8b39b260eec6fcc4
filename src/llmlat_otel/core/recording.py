"""A recording: the finished account of one call, as plain values."""

from __future__ import annotations

from typing import NamedTuple

from llmlat_semconv.phases import Phase
from llmlat_semconv.values import AttemptOutcome, AttemptReason, ContentKind, Evidence, StreamEnd

# Named tuples and not frozen dataclasses, which take five times as long to make: each call makes a
# dozen of them.


class Anchor(NamedTuple):
    """One instant, read on the monotonic and on the wall clock."""

    monotonic_ns: int
    wall_ns: int
    uncertainty_ns: int

    def wall_at(self, monotonic_ns: int) -> int:
        """Wall time (ns since the Unix epoch) of a monotonic instant."""
        return self.wall_ns + monotonic_ns - self.monotonic_ns


class PhaseInterval(NamedTuple):
    """A phase that was measured; `attempt` is 0 where it belongs to none (prepare, backoff)."""

    phase: Phase
    start_ns: int
    end_ns: int
    attempt: int
    truncated: bool


class Attempt(NamedTuple):
    """One request that was sent for the call; `outcome` is None where it was never known."""

    number: int
    reason: AttemptReason
    start_ns: int
    end_ns: int
    outcome: AttemptOutcome | None
    error_type: str | None


class StreamAccount(NamedTuple):
    """How a streamed response arrived; amounts in ns, instants on the monotonic clock.

    `gap_buckets` counts the gaps by `STREAM_GAP_BOUNDARIES_S`, longer ones last. A gap is time
    inside a pull: what the caller did between two pulls is `consumer_ns`. `chunk_count` is None
    where nobody told the events apart: the body was read as it came.
    """

    end: StreamEnd
    chunk_count: int | None
    first_chunk_ns: int | None
    first_content_ns: int | None
    first_content_kind: ContentKind | None
    gap_total_ns: int
    gap_max_ns: int
    gap_buckets: tuple[int, ...]
    stall_count: int
    stall_ns: int
    consumer_ns: int


class ToolCall(NamedTuple):
    """A streamed tool call and the instant at which its arguments were complete."""

    call_id: str
    complete_ns: int


class Reported(NamedTuple):
    """A phase as the peer reports it; it has no position in our time."""

    phase: Phase
    duration_ns: int
    evidence: Evidence


class Recording(NamedTuple):
    """The finished account of one call; `gap_ns` is its time in no phase."""

    anchor: Anchor
    start_ns: int
    end_ns: int
    phases: tuple[PhaseInterval, ...]
    gap_ns: int
    attempts: tuple[Attempt, ...]
    stream: StreamAccount | None
    tool_calls: tuple[ToolCall, ...]
    reported: tuple[Reported, ...]
