"""The timeline of one engine request: what its scheduler stamped in, phases out; pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

from llmlat_otel.core.recording import PhaseInterval
from llmlat_semconv.phases import Phase

# A request waits, runs, and may be evicted. It runs prefill up to the first token and decode from
# there on. What came before the first token is cut by an eviction, since nothing of it is left;
# decode is not: `preempted` lies within it.
#
#   queued  scheduled     evicted  scheduled   first token     evicted  scheduled   last token
#     |queue|   prefill      |preempted|  prefill |       decode                        |
#                                                              |preempted|
#
# An engine that stamps a request as queued again in the middle of its run has let it wait again:
# it is another `queue`, and takes the place of what ran (vllm-project/vllm#56238).


class Mark(str, Enum):
    """What a scheduler does with a request."""

    QUEUED = "q"
    """It is ready to be scheduled."""
    SCHEDULED = "s"
    EVICTED = "p"
    """It has lost its place in the batch."""
    KV_ASKED = "k"
    """Its cache is asked of another engine."""
    KV_PRESENT = "l"


Stamp = tuple[Mark, int]
"""What was done, and when, on the monotonic clock of whoever did it."""

_STATES: Final = {
    Mark.QUEUED: Phase.QUEUE,
    Mark.SCHEDULED: Phase.PREFILL,
    Mark.EVICTED: Phase.PREEMPTED,
}
_RUNNING: Final = frozenset((Phase.PREFILL, Phase.DECODE))


class Outputs(NamedTuple):
    """When tokens came out; None where none did.

    Attributes:
        first_ns: When the first one was sampled.
        last_ns: When the last one so far was.
    """

    first_ns: int | None
    last_ns: int | None


class _Stretch(NamedTuple):
    phase: Phase
    start_ns: int
    end_ns: int
    is_cut: bool


def phases_of(
    stamps: Iterable[Stamp], outputs: Outputs, given_up_ns: int | None = None
) -> tuple[PhaseInterval, ...]:
    """The phases of a request, in the order of their starts; those never reached are absent.

    Args:
        stamps: In the order in which they were made. One that lies before the one before it is
            moved up to it; 0 says that there is none.
        outputs: The tokens, on the same clock.
        given_up_ns: When it was given up, if it was: the phase that it was in ends there, cut
            short. Without it, what has no end is left out.
    """
    marks = [each for each in stamps if each[1]]
    stretches = list(_stretches(_in_turn(marks), outputs, given_up_ns))
    found = [
        PhaseInterval(each.phase, each.start_ns, each.end_ns, 0, each.is_cut)
        for each in (*_joined(stretches), *_transfers(marks, given_up_ns))
        if each.end_ns > each.start_ns
    ]
    return tuple(sorted(found, key=lambda each: (each.start_ns, -each.end_ns)))


def _in_turn(marks: Iterable[Stamp]) -> Iterable[tuple[Phase, int]]:
    """The states that it went through; what repeats the one before adds nothing."""
    state, reached_ns = None, 0
    for mark, at_ns in marks:
        phase = _STATES.get(mark)
        if phase is not None and phase is not state:
            state, reached_ns = phase, max(reached_ns, at_ns)
            yield phase, reached_ns


def _stretches(
    states: Iterable[tuple[Phase, int]], outputs: Outputs, given_up_ns: int | None
) -> Iterable[_Stretch]:
    entered = list(states)
    for place, (phase, start_ns) in enumerate(entered):
        is_last = place + 1 == len(entered)
        end_ns = given_up_ns if is_last else entered[place + 1][1]
        if phase in _RUNNING:
            yield from _run(start_ns, end_ns, outputs, is_last=is_last)
        elif end_ns is not None:
            yield _Stretch(phase, start_ns, end_ns, is_last)


def _run(
    start_ns: int, end_ns: int | None, outputs: Outputs, *, is_last: bool
) -> Iterable[_Stretch]:
    """A stretch in the batch: prefill up to the first token, decode after it."""
    first_ns, last_ns = outputs
    if is_last and end_ns is None:
        end_ns, is_last = last_ns, False  # The last token is a true end.
    if end_ns is None:
        return
    if first_ns is None or first_ns > end_ns:
        # With the first token in a later stretch this one was lost.
        yield _Stretch(Phase.PREFILL, start_ns, end_ns, is_last)
        return
    if first_ns > start_ns:
        yield _Stretch(Phase.PREFILL, start_ns, first_ns, False)
    yield _Stretch(Phase.DECODE, max(start_ns, first_ns), end_ns, is_last)


def _joined(stretches: list[_Stretch]) -> Iterable[_Stretch]:
    """Decode goes on over evictions, which lie within it."""
    decode: _Stretch | None = None
    waited: list[_Stretch] = []
    for each in stretches:
        if decode is not None and each.phase is Phase.PREEMPTED:
            waited.append(each)
        elif decode is not None and each.phase is Phase.DECODE:
            decode = decode._replace(end_ns=each.end_ns, is_cut=each.is_cut)
        else:
            if decode is not None:
                yield decode
                decode = None
            if each.phase is Phase.DECODE:
                decode = each
            else:
                yield each
    if decode is not None:
        ends = [decode.end_ns, *(each.end_ns for each in waited)]
        is_cut = decode.is_cut or any(each.is_cut for each in waited)
        yield decode._replace(end_ns=max(ends), is_cut=is_cut)
    yield from waited


def _transfers(marks: Iterable[Stamp], given_up_ns: int | None) -> Iterable[_Stretch]:
    """Loads of a cache from elsewhere: each lies within a `queue`."""
    asked_ns: int | None = None
    for mark, at_ns in marks:
        if mark is Mark.KV_ASKED and asked_ns is None:
            asked_ns = at_ns
        elif mark is Mark.KV_PRESENT and asked_ns is not None:
            yield _Stretch(Phase.KV_TRANSFER, asked_ns, at_ns, False)
            asked_ns = None
    if asked_ns is not None and given_up_ns is not None:
        yield _Stretch(Phase.KV_TRANSFER, asked_ns, given_up_ns, True)
