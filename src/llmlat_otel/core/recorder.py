"""The recorder: instants of one call in, an account of its phases out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llmlat_otel.core.arrivals import Arrivals
from llmlat_otel.core.recording import (
    Anchor,
    Attempt,
    PhaseInterval,
    Recording,
    Reported,
    StreamAccount,
    ToolCall,
)
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import AttemptOutcome, AttemptReason, ContentKind, Evidence, StreamEnd

# Theory of operation
# ===================
#
# A call is one line of time, cut into segments. A segment is either in a phase or in none (a gap),
# and begins where the one before it ends: phases of one call cannot overlap, and phases and gaps
# always sum to the call. `enter` begins a phase, `leave` begins a gap. An instant before the last
# cut is moved up to it, so that no order of marks can break this.
#
#   start                                                                            end
#   |prepare|.|pool_wait|connect|.|send|  wait  |first_content|    stream    |finalize|
#
# The transport marks its cuts as they happen. The cuts inside the response are known only
# afterwards (any content may turn out to be the last), so the stream's instants are kept as plain
# integers while it runs, and laid out at the end. `consumer` is a sum of amounts, not a segment.
#
# A caller that reads a stream as bytes or lines sees reads and no events: the first of them is the
# first event or a part of it, the last one likewise, and which held content nobody knows. It is
# laid out as a stream without content is, and says nothing of chunks, gaps and content.

MAX_TOOL_CALLS: Final = 64


@dataclass(slots=True)
class _Segment:
    phase: Phase | None
    start_ns: int
    attempt: int = 0
    truncated: bool = False


@dataclass(slots=True)
class _OpenAttempt:
    start_ns: int
    end_ns: int | None = None
    outcome: AttemptOutcome | None = None
    error_type: str | None = None


class PhaseRecorder:
    """Records one call. All instants are monotonic nanoseconds of one clock, passed in.

    Args:
        start_ns: When the call was entered.
        anchor: The clock's anchor, kept for the whole recording.
        stall_threshold_ns: Gaps longer than this are stalls.
    """

    __slots__ = (
        "_arrivals",
        "_attempts",
        "_last_event_ns",
        "_reported",
        "_segments",
        "_stall_threshold_ns",
        "_tool_calls",
        "anchor",
        "start_ns",
    )

    def __init__(self, start_ns: int, anchor: Anchor, stall_threshold_ns: int) -> None:
        self.anchor = anchor
        self.start_ns = start_ns
        self._last_event_ns = start_ns
        self._stall_threshold_ns = stall_threshold_ns
        self._segments = [_Segment(Phase.PREPARE, start_ns)]
        self._attempts: list[_OpenAttempt] = []
        self._arrivals = Arrivals()
        self._tool_calls: list[ToolCall] = []
        self._reported: dict[Phase, Reported] = {}

    @property
    def last_event_ns(self) -> int:
        """The last instant marked so far: where an abandoned call ends."""
        return self._last_event_ns

    @property
    def last_arrival_ns(self) -> int | None:
        """When the last of the response came, if any of it has."""
        return max(self._arrivals.last_chunk_ns, self._arrivals.last_body_ns) or None

    # Cuts, as they happen

    def enter(self, phase: Phase, at_ns: int) -> None:
        """A phase begins, and whatever ran before it ends.

        A phase that resumes after a gap takes the gap in: TLS after TCP is one `connect`. A body
        that came before it was not yet the response: that of a redirect, for example.
        """
        if self._arrivals.first_body_ns is not None:
            self._cut(None, self._arrivals.first_body_ns)
            self._arrivals.first_body_ns = None
        if self._segments[-1].phase is None:
            before = self._segments[-2]
            if before.phase is phase and before.attempt == len(self._attempts):
                self._segments.pop()
                self._touch(at_ns)
                return
        self._cut(phase, at_ns)

    def leave(self, at_ns: int) -> None:
        """The current phase ends; no other begins."""
        self._cut(None, at_ns)

    def begin_attempt(self, at_ns: int) -> int:
        """A request is handed to the transport; the attempt's number, from 1.

        Time since the last attempt failed was `backoff`.
        """
        if self._attempts:
            if self._attempts[-1].end_ns is None:
                self.fail_attempt(at_ns, None, None)
            self._back_off()
            self._arrivals = Arrivals()
        self._attempts.append(_OpenAttempt(start_ns=self._touch(at_ns)))
        self._cut(None, at_ns)
        return len(self._attempts)

    def _back_off(self) -> None:
        """The gap since the last attempt failed turns out to have been a backoff."""
        gap = self._segments[-1]
        if gap.phase is None:
            gap.phase = Phase.BACKOFF
            gap.attempt = 0

    def fail_attempt(
        self, at_ns: int, outcome: AttemptOutcome | None, error_type: str | None
    ) -> None:
        """The current attempt is over without a response that is used."""
        attempt = self._attempts[-1]
        if attempt.end_ns is not None:
            return
        if self._arrivals.first_body_ns is not None:
            self._cut(None, self._arrivals.first_body_ns)
        self._truncate()
        attempt.end_ns = self._touch(at_ns)
        attempt.outcome = outcome
        attempt.error_type = error_type
        self._cut(None, at_ns)

    def head_received(self, at_ns: int) -> None:
        """The response's head has arrived: a sign of life, and no edge of any phase."""
        self._touch(at_ns)

    def body_received(self, at_ns: int) -> None:
        """Some of the response's body has arrived."""
        if self._arrivals.first_body_ns is None:
            self._arrivals.first_body_ns = at_ns
        self._arrivals.last_body_ns = at_ns
        if at_ns > self._last_event_ns:  # noqa: PLR1730 - runs per read; max() takes longer
            self._last_event_ns = at_ns

    # The stream, measured at the pull

    def part_received(self, at_ns: int) -> None:
        """Some of the body is handed to a caller that reads it as it is."""
        self.body_received(at_ns)

    def received(self, pulled_ns: int, at_ns: int, content: ContentKind | None) -> None:
        """An event is handed to the caller.

        Args:
            pulled_ns: When the caller asked for it.
            at_ns: When it was there.
            content: What is useful in it, if anything.
        """
        arrivals = self._arrivals
        if arrivals.first_chunk_ns is None:
            arrivals.first_chunk_ns = at_ns
        else:
            gap_ns = at_ns - pulled_ns
            arrivals.gap_total_ns += gap_ns
            if arrivals.usual_from_ns < gap_ns <= arrivals.usual_to_ns:
                arrivals.gap_buckets[arrivals.usual_bucket] += 1
            else:
                arrivals.unusual(gap_ns, self._stall_threshold_ns)
        arrivals.last_chunk_ns = self._last_event_ns = at_ns
        if content is not None:
            arrivals.last_content_ns = at_ns
            arrivals.gap_to_content_ns = arrivals.gap_total_ns
            if arrivals.first_visible_ns is None:
                self._first_content(at_ns, content)

    def _first_content(self, at_ns: int, content: ContentKind) -> None:
        """Text counts before a tool call, even if it comes later."""
        arrivals = self._arrivals
        if content is not ContentKind.TOOL_CALL:
            arrivals.first_visible_ns = at_ns
            arrivals.first_visible_kind = content
        elif arrivals.first_tool_call_ns is None:
            arrivals.first_tool_call_ns = at_ns

    # Facts beside the line of time

    def tool_call(self, call_id: str, complete_ns: int) -> None:
        """A streamed tool call's arguments were complete; kept up to `MAX_TOOL_CALLS`."""
        if len(self._tool_calls) < MAX_TOOL_CALLS:
            self._tool_calls.append(ToolCall(call_id, complete_ns))

    def report(self, phase: Phase, duration_ns: int, evidence: Evidence) -> None:
        """The peer says how long a phase of its own took; the last word counts."""
        self._reported[phase] = Reported(phase, duration_ns, evidence)

    def has_report(self, phase: Phase) -> bool:
        """Whether the peer has said how long a phase took."""
        return phase in self._reported

    def request_sent_ns(self) -> int | None:
        """When the current attempt's last request byte was written, if that is known."""
        for segment in reversed(self._segments):
            if segment.phase is Phase.WAIT:
                return segment.start_ns if segment.attempt == len(self._attempts) else None
        return None

    # The end

    def finish(
        self,
        end_ns: int,
        stream_end: StreamEnd | None = None,
        error_type: str | None = None,
        *,
        cancelled: bool = False,
        is_told_apart: bool = True,
    ) -> Recording:
        """The call is over; nothing may be marked after it.

        Args:
            end_ns: When it ended.
            stream_end: How its stream ended; None if it was not streamed.
            error_type: What it failed with, if it did.
            cancelled: Whether the caller gave it up before its end.
            is_told_apart: Whether somebody told the events of its stream apart.
        """
        if not self._attempts or self._attempts[-1].end_ns is None:
            self._lay_out_response(stream_end, is_told_apart=is_told_apart)
        end_ns = self._touch(end_ns)
        if self._segments[-1].phase is not Phase.FINALIZE or error_type is not None:
            self._truncate()
        self._close_attempt(end_ns, error_type, cancelled=cancelled)
        phases, gap_ns = self._tiles(end_ns)
        return Recording(
            anchor=self.anchor,
            start_ns=self.start_ns,
            end_ns=end_ns,
            phases=phases,
            gap_ns=gap_ns,
            attempts=tuple(self._attempt(index) for index in range(len(self._attempts))),
            stream=self._account(stream_end, is_told_apart=is_told_apart),
            tool_calls=tuple(self._tool_calls),
            reported=tuple(self._reported.values()),
        )

    def _lay_out_response(self, stream_end: StreamEnd | None, *, is_told_apart: bool) -> None:
        """Cut the response at the instants that are known only now."""
        arrivals = self._arrivals
        first_ns, last_ns = arrivals.first_chunk_ns, arrivals.last_chunk_ns
        if not is_told_apart:
            first_ns, last_ns = arrivals.first_body_ns, arrivals.last_body_ns
        if stream_end is None or first_ns is None:
            if arrivals.first_body_ns is not None:
                self._cut(Phase.FINALIZE, arrivals.first_body_ns)
            return
        content_ns, _ = self._content()
        if content_ns is None and is_told_apart and stream_end is not StreamEnd.COMPLETE:
            self._cut(Phase.FIRST_CONTENT, first_ns)
            return
        if content_ns is not None:
            self._cut(Phase.FIRST_CONTENT, first_ns)
        self._cut(Phase.STREAM, content_ns or first_ns)
        if stream_end is not StreamEnd.COMPLETE:
            self._truncate()
        self._cut(Phase.FINALIZE, arrivals.last_content_ns or last_ns)

    def _content(self) -> tuple[int | None, ContentKind | None]:
        arrivals = self._arrivals
        if arrivals.first_visible_ns is not None:
            return arrivals.first_visible_ns, arrivals.first_visible_kind
        if arrivals.first_tool_call_ns is not None:
            return arrivals.first_tool_call_ns, ContentKind.TOOL_CALL
        return None, None

    def _close_attempt(self, end_ns: int, error_type: str | None, *, cancelled: bool) -> None:
        if not self._attempts or self._attempts[-1].end_ns is not None:
            return
        attempt = self._attempts[-1]
        attempt.end_ns = end_ns
        attempt.error_type = error_type
        if cancelled:
            attempt.outcome = AttemptOutcome.CANCELLED
        else:
            attempt.outcome = AttemptOutcome.WON if error_type is None else AttemptOutcome.FAILED

    def _account(
        self, stream_end: StreamEnd | None, *, is_told_apart: bool
    ) -> StreamAccount | None:
        if stream_end is None:
            return None
        arrivals = self._arrivals
        content_ns, kind = self._content()
        first_chunk_ns = arrivals.first_chunk_ns
        count = 0 if first_chunk_ns is None else 1 + sum(arrivals.gap_buckets)
        return StreamAccount(
            end=stream_end,
            chunk_count=count if is_told_apart else None,
            first_chunk_ns=first_chunk_ns,
            first_content_ns=content_ns,
            first_content_kind=kind,
            gap_total_ns=arrivals.gap_total_ns,
            gap_max_ns=arrivals.gap_max_ns,
            gap_buckets=tuple(arrivals.gap_buckets),
            stall_count=arrivals.stall_count,
            stall_ns=arrivals.stall_ns,
            consumer_ns=self._consumer_ns(),
        )

    def _consumer_ns(self) -> int:
        """Time outside of the pulls, up to the last content; what comes after is `finalize`."""
        arrivals = self._arrivals
        if arrivals.first_chunk_ns is None:
            return 0
        if arrivals.last_content_ns is None:
            return arrivals.last_chunk_ns - arrivals.first_chunk_ns - arrivals.gap_total_ns
        return arrivals.last_content_ns - arrivals.first_chunk_ns - arrivals.gap_to_content_ns

    # The line of time

    def _touch(self, at_ns: int) -> int:
        """Note an instant; no instant lies before the last cut."""
        at_ns = max(at_ns, self._segments[-1].start_ns)
        self._last_event_ns = max(self._last_event_ns, at_ns)
        return at_ns

    def _cut(self, phase: Phase | None, at_ns: int) -> None:
        self._segments.append(_Segment(phase, self._touch(at_ns), len(self._attempts)))

    def _truncate(self) -> None:
        """The current phase will not reach the edge that ends it."""
        self._segments[-1].truncated = True

    def _tiles(self, end_ns: int) -> tuple[tuple[PhaseInterval, ...], int]:
        """The phases that took any time, and the time in none."""
        phases: list[PhaseInterval] = []
        gap_ns = 0
        stops_ns = [*(each.start_ns for each in self._segments[1:]), end_ns]
        for each, stop_ns in zip(self._segments, stops_ns, strict=True):
            start_ns = each.start_ns
            if each.phase is None:
                gap_ns += stop_ns - start_ns
            elif stop_ns > start_ns:
                phases.append(
                    PhaseInterval(each.phase, start_ns, stop_ns, each.attempt, each.truncated)
                )
        return tuple(phases), gap_ns

    def _attempt(self, index: int) -> Attempt:
        attempt = self._attempts[index]
        return Attempt(
            number=index + 1,
            reason=AttemptReason.RETRY if index else AttemptReason.INITIAL,
            start_ns=attempt.start_ns,
            end_ns=attempt.start_ns if attempt.end_ns is None else attempt.end_ns,
            outcome=attempt.outcome,
            error_type=attempt.error_type,
        )
