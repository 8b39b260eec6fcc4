"""Places every operation on the clock of its own domain, and names that domain.

    clock domain id + monotonic start   placed by them: a stepped wall clock bends nothing
    the process is known to have one    placed through the process's anchor (wall -> monotonic)
    neither                             placed by the wall stamps

No stamp of one domain is ever compared with a stamp of another: what joins them is durations
(the exchange of a call needs no clocks) and the intervals of their offsets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final

from llmlat_processor.model import Resource, Span, Trace
from llmlat_processor.relations import is_remote
from llmlat_semconv import attributes as names

RESOLUTIONS_NS: Final = (1_000_000, 1_000)
"""Granularities that a clock is checked for, the largest first (1 ns is the rest)."""

MIN_STAMPS: Final = 32
"""Distinct stamps that must all be multiples before a granularity is believed."""

_START: Final[Callable[[Span], int]] = attrgetter("start_ns")
_END: Final[Callable[[Span], int]] = attrgetter("end_ns")

COARSEST_NS: Final = 1_000_000_000
"""What declares steps longer than a second is no clock."""

ANCHORING_NS: Final = 50_000
"""What placing a wall stamp by an anchor adds to the anchor's own uncertainty."""


class Anchor:
    """How wall stamps become readings of a domain's monotonic clock (plain slots: hot path)."""

    __slots__ = ("domain", "uncertainty_ns", "wall_minus_monotonic_ns")

    def __init__(self, domain: str, wall_minus_monotonic_ns: int, uncertainty_ns: int) -> None:
        self.domain = domain
        self.wall_minus_monotonic_ns = wall_minus_monotonic_ns
        self.uncertainty_ns = uncertainty_ns

    def says_the_same(self, other: Anchor) -> bool:
        """Whether both place a stamp alike."""
        return (
            self.wall_minus_monotonic_ns == other.wall_minus_monotonic_ns
            and self.domain == other.domain
            and self.uncertainty_ns == other.uncertainty_ns
        )


class Anchors:
    """The anchors of processes that tell their monotonic clock, and one per domain for the rest.

    Attributes:
        read: the spans that tell their monotonic clock, in the trace's order.
        by_domain: the first anchor of each domain.
        spread_ns: per domain, how far its wall clock was stepped, slewed or read apart meanwhile.
    """

    def __init__(self, trace: Trace) -> None:
        self.read: list[tuple[Span, Anchor]] = []
        self.by_domain: dict[str, Anchor] = {}
        self.spread_ns: dict[str, int] = {}
        self._by_process: dict[str, list[Anchor]] = {}
        self._walls_ns: dict[str, list[int]] = {}
        for span in trace.operations:  # by wall start
            anchor = anchor_of(span) if span.attributes else None
            if anchor is not None:
                self.read.append((span, anchor))
                own = self._by_process.setdefault(span.resource.process, [])
                if not own or not own[-1].says_the_same(anchor):
                    own.append(anchor)
                    walls_ns = self._walls_ns.setdefault(span.resource.process, [])
                    walls_ns.append(span.start_ns)
                first = self.by_domain.setdefault(anchor.domain, anchor)
                apart = abs(anchor.wall_minus_monotonic_ns - first.wall_minus_monotonic_ns)
                self.spread_ns[anchor.domain] = max(self.spread_ns.get(anchor.domain, 0), apart)

    def of(self, span: Span) -> Anchor | None:
        """The anchor that a span is placed by; None where wall stamps are all there is.

        Of several of its process it is the nearest before: the wall clock may have been stepped.
        """
        if not self.read:
            return None
        own = self._by_process.get(span.resource.process)
        if own is None:
            return self.by_domain.get(_declared_domain(span) or span.resource.domain)
        if len(own) == 1:
            return own[0]
        before = bisect_right(self._walls_ns[span.resource.process], span.start_ns)
        return own[max(0, before - 1)]


class Placement:
    """Where each operation stands on its own clock, and which clock that is.

    Attributes:
        starts_ns: per operation, its start on its domain's clock.
        phase_starts_ns: the same for the phase spans of each operation that has some.
        domains: per operation, the name of its domain.
        anchors: of the processes and domains that tell their monotonic clock.
        resolutions_ns: per domain, how far apart two of its stamps may be and still be one instant.
        blurs_ns: the same where more is granted than believed: a few stamps may all be coarse.
    """

    def __init__(self, trace: Trace) -> None:
        anchors = self.anchors = Anchors(trace)
        operations = trace.operations
        placed_by = list(map(anchors.of, operations))
        self.starts_ns = list(map(_start, operations, placed_by))
        self.phase_starts_ns = {
            position: list(map(_start, phases, map(anchors.of, phases)))
            for position, phases in trace.phases.items()
        }
        named = list(map(_domain, operations, placed_by))
        self.domains = _told_apart(trace, named)
        believed, granted = _resolutions(trace, named, anchors)
        self.resolutions_ns = self._per_domain(named, believed)
        self.blurs_ns = self._per_domain(named, granted)

    def wall(self, domain: str) -> tuple[int, int]:
        """(wall clock - domain's clock, its uncertainty) in ns, as the domain's first span has it.

        Of a domain of wall stamps both are 0.
        """
        anchor = self.anchors.by_domain.get(domain)
        return (anchor.wall_minus_monotonic_ns, anchor.uncertainty_ns) if anchor else (0, 0)

    def _per_domain(self, named: Sequence[str], by_name: Mapping[str, int]) -> dict[str, int]:
        return {domain: by_name[name] for domain, name in zip(self.domains, named, strict=True)}


def children_of(trace: Trace) -> dict[int, list[int]]:
    """Per operation that has some, the indices of its children."""
    children: dict[int, list[int]] = {}
    for position, parent in enumerate(trace.parents):
        if parent >= 0:
            children.setdefault(parent, []).append(position)
    return children


def parents_first(trace: Trace, children: Mapping[int, Sequence[int]]) -> Sequence[int]:
    """Indices of all operations that hang under a root, parents first."""
    order = [position for position, parent in enumerate(trace.parents) if parent < 0]
    for position in order:  # grows while it is read: breadth first, no recursion
        if position in children:
            order.extend(children[position])
    return order


def _told_apart(trace: Trace, named: list[str]) -> list[str]:
    """A weak domain is a hash of the resource: one clock only as far as no call goes out of it.

    client  ─┬──────┬──
    server   └ A1   └ A2     one resource, perhaps two replicas of it: two clocks
    """
    if not any(span.resource.weak for span in trace.operations):
        return named
    return [_told_name(trace, named, entry) for entry in _entries(trace, named)]


def _entries(trace: Trace, named: Sequence[str]) -> list[int]:
    """Per operation the first one on the way up that was called from elsewhere."""
    operations, parents = trace.operations, trace.parents
    entries = [-1] * len(operations)
    for start in range(len(operations)):
        trail: dict[int, None] = {}
        position = start
        while entries[position] < 0:
            trail[position] = None
            above = parents[position]
            if (
                above < 0
                or above in trail  # in a circle of parents everybody is inside
                or named[above] != named[position]
                or is_remote(operations[position], operations[above])
            ):
                entries[position] = position
                break
            position = above
        for below in trail:
            entries[below] = entries[position]
    return entries


def _told_name(trace: Trace, named: Sequence[str], entry: int) -> str:
    span = trace.operations[entry]
    is_first_root = bool(trace.roots) and trace.roots[0] == entry
    if is_first_root or not span.resource.weak:
        return named[entry]
    return f"{named[entry]}/{span.span_id.hex()}"


def anchor_of(span: Span) -> Anchor | None:
    """How the wall stamps of a span that tells its monotonic clock become readings of that."""
    monotonic, domain = _monotonic_start(span), _declared_domain(span)
    if monotonic is None or not domain:
        return None
    uncertainty = span.attributes.get(names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY)
    known = uncertainty if type(uncertainty) is int and uncertainty > 0 else 0
    return Anchor(domain, span.start_ns - monotonic, known)


def _monotonic_start(span: Span) -> int | None:
    reading = span.attributes.get(names.LLMLAT_CLOCK_MONOTONIC_START)
    return reading if type(reading) is int else None  # True is an int, but no reading


def _declared_domain(span: Span) -> str:
    key = names.LLMLAT_CLOCK_DOMAIN_ID
    domain = span.attributes.get(key) or span.resource.attributes.get(key)
    return domain if isinstance(domain, str) else ""


def _domain(span: Span, anchor: Anchor | None) -> str:
    if anchor is not None:
        return anchor.domain
    return (_declared_domain(span) if span.attributes else "") or span.resource.domain


def _start(span: Span, anchor: Anchor | None) -> int:
    if anchor is None:
        return span.start_ns
    monotonic = _monotonic_start(span) if span.attributes else None
    return span.start_ns - anchor.wall_minus_monotonic_ns if monotonic is None else monotonic


def _declared_resolution(resource: Resource) -> int:
    """What a resource says of its stamps; 0 where it says nothing, or nothing that can be true."""
    step = resource.attributes.get(names.LLMLAT_CLOCK_DOMAIN_RESOLUTION)
    return step if type(step) is int and 0 < step <= COARSEST_NS else 0


def _resolutions(
    trace: Trace, domains: Sequence[str], anchors: Anchors
) -> tuple[dict[str, int], dict[str, int]]:
    """Per domain, how far apart two of its stamps may be and still be one instant.

    Returns:
        What is believed, and what is granted before something is called impossible.
    """
    declared = trace.assumptions.resolution_ns
    if declared is not None:
        return (dict.fromkeys(domains, declared),) * 2
    members: dict[str, list[Span]] = {}
    for span, domain in zip(trace.operations, domains, strict=True):
        members.setdefault(domain, []).append(span)
    believed: dict[str, int] = {}
    granted: dict[str, int] = {}
    for domain, spans in members.items():
        anchoring_ns = _anchoring_ns(anchors, domain, spans)
        spread_ns = anchors.spread_ns[domain] if anchoring_ns else 0
        told = max(map(_declared_resolution, {span.resource for span in spans}))
        believed[domain] = max(anchoring_ns, told or _granularity(spans))
        granted[domain] = max(anchoring_ns + spread_ns, told, _coarsest(spans))
    return believed, granted


def _anchoring_ns(anchors: Anchors, domain: str, spans: Sequence[Span]) -> int:
    """What placing wall stamps on a monotonic clock costs; 0 where none had to be."""
    anchor = anchors.by_domain.get(domain)
    if anchor is None or all(_monotonic_start(span) is not None for span in spans):
        return 0
    return anchor.uncertainty_ns + ANCHORING_NS


def _granularity(spans: Sequence[Span]) -> int:
    """The largest that divides every stamp, if there are enough."""
    divisor = min(_divisor(spans, _START), _divisor(spans, _END))
    if divisor == 1:
        return 1
    stamps = set(chain.from_iterable((span.start_ns, span.end_ns) for span in spans))
    return divisor if len(stamps) >= MIN_STAMPS else 1


def _coarsest(spans: Sequence[Span]) -> int:
    """The largest that divides all starts, or all ends, of any one process of the domain.

    Few as they may be: who takes a start from a clock of milliseconds and adds what passed by a
    finer one (OpenTelemetry's JavaScript SDK) has stamps that no one granularity divides.
    """
    by_process: dict[str, list[Span]] = {}
    for span in spans:
        by_process.setdefault(span.resource.process, []).append(span)
    coarsest = 1
    for own in by_process.values():
        coarsest = max(coarsest, _divisor(own, _START), _divisor(own, _END))
    return coarsest


def _divisor(spans: Sequence[Span], stamp_of: Callable[[Span], int]) -> int:
    """The largest granularity that divides all such stamps; most clocks show in the first one."""
    if stamp_of(spans[0]) % RESOLUTIONS_NS[-1]:
        return 1
    divisor = RESOLUTIONS_NS[0]
    for stamp in map(stamp_of, spans):
        if stamp % divisor:
            divisor = next(
                (step for step in RESOLUTIONS_NS if divisor % step == 0 and stamp % step == 0), 1
            )
            if divisor == 1:
                break
    return divisor
