"""What a recording says of its call, as attributes of spans; pure.

What others have said is passed on only as text that can be sent, and as numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeGuard

from llmlat_otel.core.recording import Anchor, Attempt, PhaseInterval, Recording, StreamAccount
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import (
    FACTS,
    Phase,
    duration_attribute,
    reported_duration_attribute,
    reported_evidence_attribute,
)
from llmlat_semconv.values import AttemptReason, Boundary, Evidence, OperationName
from llmlat_semconv.version import CONTRACT_VERSION

Value = str | bool | int | float | tuple[str, ...] | tuple[int, ...]
Attributes = dict[str, Value]

NS_PER_S: Final = 1_000_000_000
LONGEST: Final = 256
"""Names and ids of others are cut to so many characters."""

_KINDS: Final = frozenset({bool, int, float, tuple})
_INTEGERS: Final = range(-(2**63), 2**63)
"""What an attribute can hold: one that is larger fails at export, with all that goes with it."""

_OURS: Final = frozenset(value for key, value in vars(names).items() if key.startswith("LLMLAT_"))

_CLIENT: Final = Boundary.CLIENT.value

UPPER_BOUNDS: Final = frozenset((Phase.RELAY, Phase.KV_TRANSFER))
"""Phases that may have ended before we learned of it: a busy server's `send` returns late, and a
scheduler looks at what has come in its next step."""


def evidence_of(phase: Phase) -> Evidence:
    """How the length of a phase that we time is known."""
    return Evidence.BOUNDED if phase in UPPER_BOUNDS else Evidence.MEASURED


_PHASE_FACTS: Final[dict[Phase, Attributes]] = {
    phase: {
        names.LLMLAT_PHASE_NAME: phase.value,
        names.LLMLAT_PHASE_CLASS: facts.phase_class.value,
        names.LLMLAT_PHASE_EVIDENCE: evidence_of(phase).value,
        names.LLMLAT_BOUNDARY_NAME: facts.boundary.value,
    }
    for phase, facts in FACTS.items()
}


class Request(NamedTuple):
    """What a call asks for, and on whose side; None where it is not known."""

    operation: OperationName
    provider: str | None
    model: str | None
    streamed: bool | None
    server_address: str | None = None
    server_port: int | None = None
    boundary: Boundary = Boundary.CLIENT


def text(value: object) -> str | None:
    """A name or id of somebody else's, fit to be sent; None for whatever is no text.

    A lone surrogate cannot be encoded: in an attribute it is an error in the application's log, in
    the name of a span the whole batch is lost.
    """
    if not issubclass(type(value), str):  # `isinstance` asks the object too, which may raise.
        return None
    plain = str.__str__(value)[:LONGEST]
    return plain if plain.isascii() else plain.encode(errors="replace").decode()


def texts(values: Iterable[object]) -> tuple[str, ...]:
    """Those of several that are text."""
    return tuple(each for each in map(text, values) if each is not None)


def of_facts(facts: Mapping[str, object], *, ours_only: bool) -> Attributes:
    """What a library's response says, as far as it can be sent.

    Args:
        facts: By name.
        ours_only: Leave out what is not in a name of our own: on others' spans they say it.
    """
    attributes: Attributes = {}
    for name, value in facts.items():
        said = None if ours_only and name not in _OURS else _value(value)
        if said is not None:
            attributes[name] = said
    return attributes


def _value(value: object) -> Value | None:
    if type(value) not in _KINDS:
        return text(value)
    if isinstance(value, tuple):
        return value if _are_counts(value) else texts(value)
    if isinstance(value, (int, float)):
        return None if type(value) is int and value not in _INTEGERS else value
    return None


def _are_counts(values: tuple[object, ...]) -> TypeGuard[tuple[int, ...]]:
    return bool(values) and all(type(each) is int and each in _INTEGERS for each in values)


def of_request(request: Request) -> Attributes:
    """Attributes of an inference span that are known when it starts."""
    attributes = of_target(request)
    if request.streamed is not None:
        attributes[names.GEN_AI_REQUEST_STREAM] = request.streamed
    return attributes


def of_target(request: Request) -> Attributes:
    """What is asked, of whom: on spans and, all of it of few values, on metrics."""
    attributes: Attributes = {names.GEN_AI_OPERATION_NAME: request.operation.value}
    if request.provider is not None:
        attributes[names.GEN_AI_PROVIDER_NAME] = request.provider
    model, address = text(request.model), text(request.server_address)
    if model is not None:
        attributes[names.GEN_AI_REQUEST_MODEL] = model
    if address is not None:
        attributes[names.SERVER_ADDRESS] = address
    if request.server_port is not None:
        attributes[names.SERVER_PORT] = request.server_port
    return attributes


def of_operation(boundary: Boundary, anchor: Anchor) -> Attributes:
    """Attributes of every operation span: contract, boundary, and how its clock maps to wall."""
    attributes = of_clock(anchor)
    attributes[names.LLMLAT_BOUNDARY_NAME] = boundary.value
    return attributes


def of_clock(anchor: Anchor) -> Attributes:
    """The same of one whose boundary is known only when it is over."""
    return {
        names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
        names.LLMLAT_CLOCK_ANCHOR_MONOTONIC: anchor.monotonic_ns,
        names.LLMLAT_CLOCK_ANCHOR_WALL: anchor.wall_ns,
        names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY: anchor.uncertainty_ns,
    }


def of_phase(interval: PhaseInterval, sequence: int | None) -> Attributes:
    """Attributes of a phase span; `sequence` is its position in its call, if that is known."""
    attributes = _PHASE_FACTS[interval.phase].copy()
    attributes[names.LLMLAT_PHASE_DURATION] = (interval.end_ns - interval.start_ns) / NS_PER_S
    if sequence is not None:
        attributes[names.LLMLAT_PHASE_SEQUENCE] = sequence
    if interval.truncated:
        attributes[names.LLMLAT_PHASE_TRUNCATED] = True
    return attributes


def of_attempt(attempt: Attempt) -> Attributes:
    """Attributes of an attempt that are known when it is over."""
    attributes: Attributes = {}
    if attempt.outcome is not None:
        attributes[names.LLMLAT_ATTEMPT_OUTCOME] = attempt.outcome.value
    if attempt.error_type is not None:
        attributes[names.ERROR_TYPE] = attempt.error_type
    return attributes


def of_attempt_start(number: int, reason: AttemptReason) -> Attributes:
    """Attributes of an attempt that are known when it starts."""
    return {
        names.LLMLAT_BOUNDARY_NAME: _CLIENT,
        names.LLMLAT_ATTEMPT_NUMBER: number,
        names.LLMLAT_ATTEMPT_REASON: reason.value,
    }


def of_recording(recording: Recording, stall_threshold_ns: int) -> Attributes:
    """What the finished account adds to the operation span, phases aside."""
    attributes: Attributes = {}
    if recording.stream is not None:
        _add_stream(attributes, recording.stream, recording.start_ns, stall_threshold_ns)
    for each in recording.reported:
        attributes[reported_duration_attribute(each.phase)] = each.duration_ns / NS_PER_S
        if each.evidence is not Evidence.REPORTED:
            attributes[reported_evidence_attribute(each.phase)] = each.evidence.value
    return attributes


def of_call(recording: Recording) -> Attributes:
    """What the account says in OpenTelemetry's own words; not ours to say on others' spans."""
    attributes: Attributes = {}
    first_chunk_s = time_to_first_chunk_s(recording)
    if first_chunk_s is not None:
        attributes[names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] = first_chunk_s
    if len(recording.attempts) > 1:
        attributes[names.HTTP_REQUEST_RESEND_COUNT] = len(recording.attempts) - 1
    return attributes


def _add_stream(
    attributes: Attributes, stream: StreamAccount, start_ns: int, stall_threshold_ns: int
) -> None:
    attributes[names.LLMLAT_STREAM_END] = stream.end.value
    if stream.chunk_count is not None:
        attributes[names.LLMLAT_STREAM_CHUNK_COUNT] = stream.chunk_count
    if stream.chunk_count is not None and stream.chunk_count > 1:
        attributes[names.LLMLAT_STREAM_GAP_MAX] = stream.gap_max_ns / NS_PER_S
        attributes[names.LLMLAT_STREAM_GAP_BUCKET_COUNTS] = stream.gap_buckets
        attributes[names.LLMLAT_STREAM_STALL_COUNT] = stream.stall_count
        attributes[names.LLMLAT_STREAM_STALL_DURATION] = stream.stall_ns / NS_PER_S
        attributes[names.LLMLAT_STREAM_STALL_THRESHOLD] = stall_threshold_ns / NS_PER_S
        attributes[duration_attribute(Phase.CONSUMER)] = stream.consumer_ns / NS_PER_S
    if stream.first_content_ns is not None and stream.first_content_kind is not None:
        seconds = (stream.first_content_ns - start_ns) / NS_PER_S
        attributes[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] = seconds
        attributes[names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND] = stream.first_content_kind.value


def time_to_first_chunk_s(recording: Recording) -> float | None:
    """From the call's entry to its first response event; None if there was none."""
    if recording.stream is None or recording.stream.first_chunk_ns is None:
        return None
    return (recording.stream.first_chunk_ns - recording.start_ns) / NS_PER_S


def time_per_output_chunk_s(recording: Recording) -> float | None:
    """Mean wait for the peer between two events of the stream; None for fewer than two."""
    stream = recording.stream
    if stream is None or stream.chunk_count is None or stream.chunk_count < 2:
        return None
    return stream.gap_total_ns / (stream.chunk_count - 1) / NS_PER_S


def error_type(error: BaseException | None) -> str | None:
    """The qualified name of an exception's class; never its message, which may hold content."""
    if error is None:
        return None
    kind = type(error)
    name, module = text(kind.__qualname__), text(kind.__module__)
    return name if module in {None, "builtins"} else f"{module}.{name}"
