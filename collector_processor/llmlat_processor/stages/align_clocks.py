"""Places every operation on the clock of its own domain, and names that domain.

    clock domain id + monotonic start   placed by them: a stepped wall clock bends nothing
    the process is known to have one    placed through the process's anchor (wall -> monotonic)
    neither                             placed by the wall stamps

Domains are joined by durations alone (the exchange of a call needs no clocks), so no stamp of
one domain is ever compared with a stamp of another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from llmlat_processor.model import AlignedTrace, Span, Trace
from llmlat_semconv import attributes as names

RESOLUTIONS_NS: Final = (1_000_000, 1_000)
"""Granularities that a clock is checked for, the largest first (1 ns is the rest)."""

MIN_STAMPS: Final = 32
"""Distinct stamps that must all be multiples before a granularity is believed."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    """How one process's wall stamps become readings of its domain's monotonic clock."""

    domain: str
    wall_minus_monotonic_ns: int


def align_clocks(trace: Trace) -> AlignedTrace:
    """Place the operations and phases of a trace, each on its own domain's clock."""
    anchors = _anchors(trace)
    domains = [_domain(span, anchors) for span in trace.operations]
    weak = {span.resource.domain for span in trace.operations if span.resource.weak}
    return AlignedTrace(
        trace=trace,
        starts_ns=_placed(trace.operations, anchors),
        phase_starts_ns={
            position: _placed(phases, anchors) for position, phases in trace.phases.items()
        },
        domains=domains,
        weak_domains=frozenset(weak),
        resolutions_ns=_resolutions(trace, domains),
    )


def _anchors(trace: Trace) -> dict[str, _Anchor]:
    """One anchor per process that tells its monotonic clock; the earliest span's own."""
    anchors: dict[str, _Anchor] = {}
    for span in trace.operations:
        if not span.attributes and not span.resource.attributes:
            continue
        monotonic = span.attributes.get(names.LLMLAT_CLOCK_MONOTONIC_START)
        domain = _declared_domain(span)
        if isinstance(monotonic, int) and domain and span.resource.process not in anchors:
            anchors[span.resource.process] = _Anchor(domain, span.start_ns - monotonic)
    return anchors


def _declared_domain(span: Span) -> str:
    key = names.LLMLAT_CLOCK_DOMAIN_ID
    domain = span.attributes.get(key) or span.resource.attributes.get(key)
    return domain if isinstance(domain, str) else ""


def _domain(span: Span, anchors: dict[str, _Anchor]) -> str:
    anchor = anchors.get(span.resource.process) if anchors else None
    if anchor is not None:
        return anchor.domain
    return (_declared_domain(span) if span.attributes else "") or span.resource.domain


def _placed(spans: Sequence[Span], anchors: dict[str, _Anchor]) -> list[int]:
    if not anchors:
        return [span.start_ns for span in spans]
    return [_start(span, anchors.get(span.resource.process)) for span in spans]


def _start(span: Span, anchor: _Anchor | None) -> int:
    if anchor is None:
        return span.start_ns
    monotonic = span.attributes.get(names.LLMLAT_CLOCK_MONOTONIC_START)
    if isinstance(monotonic, int):
        return monotonic
    return span.start_ns - anchor.wall_minus_monotonic_ns


def _resolutions(trace: Trace, domains: Sequence[str]) -> dict[str, int]:
    declared = trace.assumptions.resolution_ns
    if declared is not None:
        return dict.fromkeys(domains, declared)
    members: dict[str, list[Span]] = {}
    for span, domain in zip(trace.operations, domains, strict=True):
        members.setdefault(domain, []).append(span)
    return {domain: _resolution(spans) for domain, spans in members.items()}


def _resolution(spans: Sequence[Span]) -> int:
    """The largest granularity that divides every stamp, if there are enough of them."""
    stamps = set(chain.from_iterable((span.start_ns, span.end_ns) for span in spans))
    if len(stamps) < MIN_STAMPS:
        return 1
    divisor = math.gcd(*stamps)
    return next((step for step in RESOLUTIONS_NS if divisor % step == 0), 1)
