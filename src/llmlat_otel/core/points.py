"""What a recording adds to the histograms, once at its end; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from llmlat_otel.core import attributes as account
from llmlat_otel.core.attributes import NS_PER_S, Attributes, Request
from llmlat_otel.core.recording import Recording
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import (
    GEN_AI_CLIENT_INFERENCE_DURATION,
    GEN_AI_CLIENT_INFERENCE_TIME_PER_OUTPUT_CHUNK,
    GEN_AI_CLIENT_INFERENCE_TIME_TO_FIRST_CHUNK,
    LLMLAT_PHASE_DURATION,
)
from llmlat_semconv.phases import FACTS
from llmlat_semconv.values import Boundary, Evidence

METRICS: Final = (
    LLMLAT_PHASE_DURATION,
    GEN_AI_CLIENT_INFERENCE_DURATION,
    GEN_AI_CLIENT_INFERENCE_TIME_TO_FIRST_CHUNK,
    GEN_AI_CLIENT_INFERENCE_TIME_PER_OUTPUT_CHUNK,
)

_COMMON: Final = frozenset(
    {names.GEN_AI_PROVIDER_NAME, names.GEN_AI_REQUEST_MODEL, names.ERROR_TYPE}
)

Point = tuple[str, float, Attributes]
"""A metric's name, a duration in seconds, and what it is counted by."""


def points(
    request: Request, recording: Recording, error_type: str | None, *, whole_call: bool
) -> Iterator[Point]:
    """What one call adds.

    Args:
        request: What it asked for.
        recording: Its account.
        error_type: What it failed with, if it did.
        whole_call: Whether to count the call as a whole; no if somebody else does.
    """
    target = account.of_target(request)
    if error_type is not None:
        target[names.ERROR_TYPE] = error_type
    common = {name: value for name, value in target.items() if name in _COMMON}
    yield from _of_phases(common, recording)
    if whole_call:
        yield from _of_call(target, recording)


def _of_phases(common: Attributes, recording: Recording) -> Iterator[Point]:
    for phase in recording.phases:
        seconds = (phase.end_ns - phase.start_ns) / NS_PER_S
        by = {**common, **_account(FACTS[phase.phase].boundary, account.evidence_of(phase.phase))}
        by[names.LLMLAT_PHASE_NAME] = phase.phase.value
        yield LLMLAT_PHASE_DURATION.name, seconds, by
    for each in recording.reported:
        by = {**common, **_account(FACTS[each.phase].boundary, each.evidence)}
        by[names.LLMLAT_PHASE_NAME] = each.phase.value
        yield LLMLAT_PHASE_DURATION.name, each.duration_ns / NS_PER_S, by


def _of_call(by: Attributes, recording: Recording) -> Iterator[Point]:
    duration_s = (recording.end_ns - recording.start_ns) / NS_PER_S
    yield GEN_AI_CLIENT_INFERENCE_DURATION.name, duration_s, by
    first_chunk_s = account.time_to_first_chunk_s(recording)
    if first_chunk_s is not None:
        yield GEN_AI_CLIENT_INFERENCE_TIME_TO_FIRST_CHUNK.name, first_chunk_s, by
    per_chunk_s = account.time_per_output_chunk_s(recording)
    if per_chunk_s is not None:
        yield GEN_AI_CLIENT_INFERENCE_TIME_PER_OUTPUT_CHUNK.name, per_chunk_s, by


def _account(boundary: Boundary, evidence: Evidence) -> Attributes:
    return {
        names.LLMLAT_BOUNDARY_NAME: boundary.value,
        names.LLMLAT_PHASE_EVIDENCE: evidence.value,
    }
