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

from llmlat_processor.model import AlignedTrace, Resource, Span, Trace
from llmlat_semconv import attributes as names

RESOLUTIONS_NS: Final = (1_000_000, 1_000)
"""Granularities that a clock is checked for, the largest first (1 ns is the rest)."""

MIN_STAMPS: Final = 32
"""Distinct stamps that must all be multiples before a granularity is believed."""

COARSEST_NS: Final = 1_000_000_000
"""What declares steps longer than a second is no clock."""

ANCHORING_NS: Final = 50_000
"""What placing a wall stamp by an anchor adds to the anchor's own uncertainty."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    """How wall stamps become readings of a domain's monotonic clock."""

    domain: str
    wall_minus_monotonic_ns: int
    uncertainty_ns: int


class _Anchors:
    """One anchor per process that tells its monotonic clock, and one per domain for the rest."""

    def __init__(self, trace: Trace) -> None:
        self.by_process: dict[str, _Anchor] = {}
        self.by_domain: dict[str, _Anchor] = {}
        for span in trace.operations:
            anchor = _anchor(span) if span.attributes else None
            if anchor is not None:
                self.by_process.setdefault(span.resource.process, anchor)
                self.by_domain.setdefault(anchor.domain, anchor)

    def of(self, span: Span) -> _Anchor | None:
        """The anchor that a span is placed by; None where wall stamps are all there is."""
        if not self.by_process:
            return None
        own = self.by_process.get(span.resource.process)
        return own or self.by_domain.get(_declared_domain(span) or span.resource.domain)


def align_clocks(trace: Trace) -> AlignedTrace:
    """Place the operations and phases of a trace, each on its own domain's clock."""
    anchors = _Anchors(trace)
    domains = [_domain(span, anchors.of(span)) for span in trace.operations]
    weak = {span.resource.domain for span in trace.operations if span.resource.weak}
    return AlignedTrace(
        trace=trace,
        starts_ns=[_start(span, anchors.of(span)) for span in trace.operations],
        phase_starts_ns={
            position: [_start(span, anchors.of(span)) for span in phases]
            for position, phases in trace.phases.items()
        },
        domains=domains,
        weak_domains=frozenset(weak),
        resolutions_ns=_resolutions(trace, domains, anchors),
    )


def _anchor(span: Span) -> _Anchor | None:
    monotonic, domain = _monotonic_start(span), _declared_domain(span)
    if monotonic is None or not domain:
        return None
    uncertainty = span.attributes.get(names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY)
    known = uncertainty if type(uncertainty) is int and uncertainty > 0 else 0
    return _Anchor(domain, span.start_ns - monotonic, known)


def _monotonic_start(span: Span) -> int | None:
    reading = span.attributes.get(names.LLMLAT_CLOCK_MONOTONIC_START)
    return reading if type(reading) is int else None  # True is an int, but no reading


def _declared_domain(span: Span) -> str:
    key = names.LLMLAT_CLOCK_DOMAIN_ID
    domain = span.attributes.get(key) or span.resource.attributes.get(key)
    return domain if isinstance(domain, str) else ""


def _domain(span: Span, anchor: _Anchor | None) -> str:
    if anchor is not None:
        return anchor.domain
    return (_declared_domain(span) if span.attributes else "") or span.resource.domain


def _start(span: Span, anchor: _Anchor | None) -> int:
    if anchor is None:
        return span.start_ns
    monotonic = _monotonic_start(span) if span.attributes else None
    return span.start_ns - anchor.wall_minus_monotonic_ns if monotonic is None else monotonic


def _declared_resolution(resource: Resource) -> int:
    """What a resource says of its stamps; 0 where it says nothing, or nothing that can be true."""
    step = resource.attributes.get(names.LLMLAT_CLOCK_DOMAIN_RESOLUTION)
    return step if type(step) is int and 0 < step <= COARSEST_NS else 0


def _resolutions(trace: Trace, domains: Sequence[str], anchors: _Anchors) -> dict[str, int]:
    """Per domain, how far apart two of its stamps may be and still be one instant."""
    declared = trace.assumptions.resolution_ns
    if declared is not None:
        return dict.fromkeys(domains, declared)
    members: dict[str, list[Span]] = {}
    for span, domain in zip(trace.operations, domains, strict=True):
        members.setdefault(domain, []).append(span)
    found = {domain: _resolution(spans) for domain, spans in members.items()}
    for domain, anchor in anchors.by_domain.items():
        if any(_monotonic_start(span) is None for span in members[domain]):
            found[domain] = max(found[domain], anchor.uncertainty_ns + ANCHORING_NS)
    return found


def _resolution(spans: Sequence[Span]) -> int:
    """Declared; else the largest granularity that divides every stamp, if there are enough."""
    declared = max(map(_declared_resolution, {span.resource for span in spans}))
    if declared:
        return declared
    stamps = set(chain.from_iterable((span.start_ns, span.end_ns) for span in spans))
    if len(stamps) < MIN_STAMPS:
        return 1
    divisor = math.gcd(*stamps)
    return next((step for step in RESOLUTIONS_NS if divisor % step == 0), 1)
