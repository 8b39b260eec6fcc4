"""Durations, shares, names and findings, in the same words wherever people read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llmlat_processor.model import RootPaths, Span, Trace
from llmlat_semconv.values import FindingKind, TtftAbsence

MICRO: Final = "µs"

CAVEAT: Final = (
    "queueing, batching and cache effects are not modelled; a decode what-if keeps the token count"
)

ABSENCES: Final = {
    TtftAbsence.NO_INFERENCE: "the trace has no inference",
    TtftAbsence.NOT_STREAMED: "no inference was streamed",
    TtftAbsence.ONLY_TOOL_CALLS: "every first content was a tool call",
    TtftAbsence.CHUNK_ONLY: "first chunks are known, but no first content",
}

PLAIN_WORDS: Final = {
    FindingKind.APPARENT_NEGATIVE_NETWORK: (
        "the callee's stamps lie outside the caller's; two clocks that differ explain it"
    ),
    FindingKind.NEGATIVE_TRANSIT: (
        "the callee took longer than its caller waited; no offset of clocks explains that, so "
        "its account is not used"
    ),
    FindingKind.OUTLIVED_CANCELLED_PARENT: ("the callee worked on after its caller had given up"),
    FindingKind.INFEASIBLE_OFFSET: "no one offset of two clocks fits all that they both stamped",
    FindingKind.OFFSET_CYCLE: "the offsets of three or more clocks contradict each other",
    FindingKind.CLOCK_STEP: "a clock was stepped while the trace ran",
    FindingKind.SAME_DOMAIN_ORDER: (
        "on one clock, a child lies outside its parent: instrumentation, not clocks"
    ),
    FindingKind.EPOCH_GARBAGE: "a stamp is no time of day; the span is left out of the paths",
    FindingKind.NEGATIVE_DURATION: "it ends before it starts; the span is left out of the paths",
    FindingKind.UNSET_MILESTONE: "a stamp was never set; the span is left out of the paths",
    FindingKind.MISSING_PARENT: "its parent was never received; the picture is incomplete",
    FindingKind.DUPLICATE_SPAN: "received twice with different contents; the richer one stays",
    FindingKind.DEPENDENCY_CYCLE: "these spans wait for each other in a circle",
    FindingKind.LATE_SPAN: "it came after the trace had been released",
    FindingKind.TRUNCATED_TRACE: "the trace was cut off at a limit",
    FindingKind.OUTLIVED_PARENT: "it ended after its parent; that part is off the path",
    FindingKind.HOP_BYPASSED: (
        "it hangs too high: a gateway passed its caller's context on unchanged"
    ),
    FindingKind.EVIDENCE_DISAGREES: "two accounts of one callee differ; the better one is used",
    FindingKind.PHASE_OVERFLOW: "its phases are longer than itself; they are left out",
    FindingKind.TRACE_BREAK: (
        "its request is in another trace too: somebody in between did not pass the context on"
    ),
    FindingKind.STREAM_HELD: "tokens existed for at least this long before the client had them",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a supposition does to the path to the end of one root.

    Attributes:
        asked: the supposition as it was written.
        saves_ns: by how much the end moves forward; negative where it moves back.
        saves_low_ns: the least, whichever of the earlier operations had to be waited for.
        saves_high_ns: the most.
        duration_ns: how long the root then takes.
    """

    asked: str
    saves_ns: int
    saves_low_ns: int
    saves_high_ns: int
    duration_ns: int


def duration(value_ns: int, micro: str = MICRO) -> str:
    """Write nanoseconds in three digits and the unit that suits them.

    Args:
        value_ns: nanoseconds.
        micro: how microseconds are written.
    """
    if value_ns < 0:
        return f"-{duration(-value_ns, micro)}"
    if value_ns == 0:
        return "0"
    for scale, unit in ((10**9, "s"), (10**6, "ms"), (10**3, micro)):
        if value_ns * 2_000 >= scale * 1_999:  # what would round to 1000 is 1.00 of the next unit
            return f"{_three_digits(value_ns / scale)} {unit}"
    return f"{value_ns} ns"


def spared(paths: RootPaths, trace: Trace) -> list[Span]:
    """The operations off the path to the end, the longest first."""
    spared = [span for span in trace.operations if span in paths.slacks_ns]
    return sorted(spared, key=lambda span: (-span.duration_ns, span.start_ns, span.span_id))


def spare(span: Span, slack_ns: int, micro: str = MICRO) -> str:
    """How much longer an operation could have been.

    Slack is a lower bound, so a slack of nothing only means that none is known.
    """
    more = f"at least {duration(slack_ns, micro)} more" if slack_ns else "no known time more"
    return f"{duration(span.duration_ns, micro)}: could have taken {more}"


def percent(part_ns: int, whole_ns: int) -> str:
    """Write a part of a whole: `53 %`, and `< 1 %` for what would round to nothing."""
    share = 100 * part_ns / whole_ns if whole_ns else 0.0
    return "< 1 %" if 0 < share < 1 else f"{share:.0f} %"


def printable(text: str) -> str:
    """Make a name from the wire safe to show: no control characters, nothing invisible."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text)


def _three_digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
