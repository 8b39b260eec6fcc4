"""What explained traces say in numbers: how long which label was on which path, and its shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from llmlat_processor.finding_counts import FindingCounts
from llmlat_processor.metrics.series import Histograms
from llmlat_processor.metrics.unread import Unread
from llmlat_processor.model import ExplainedTrace, Path, RootPaths, Section
from llmlat_processor.model.families import Exemplar, Family
from llmlat_semconv import attributes as names
from llmlat_semconv import metrics
from llmlat_semconv.values import SectionLabel

UNKNOWN: Final = "unknown_service"
"""OpenTelemetry's word for a service that has not said its name."""

_SECOND_NS: Final = 1_000_000_000
_OF_PATH: Final = (names.SERVICE_NAME,)
_OF_PHASE: Final = (names.LLMLAT_SECTION_LABEL, names.SERVICE_NAME)
_SHARES: Final = {
    SectionLabel.UNOBSERVED: metrics.LLMLAT_CRITICAL_PATH_UNOBSERVED_SHARE,
    SectionLabel.TRANSIT: metrics.LLMLAT_CRITICAL_PATH_TRANSIT_SHARE,
}


class _Part:
    """What one label of one service has of a path (plain slots: hot path)."""

    __slots__ = ("largest", "total_ns")

    def __init__(self, first: Section) -> None:
        self.largest = first
        self.total_ns = first.duration_ns


_Parts: TypeAlias = Mapping[tuple[SectionLabel, str], _Part]


class Derived:
    """The metrics of the contract that are made of whole traces.

    One thread observes, any may read. A trace that is explained again counts once only: what was
    counted cannot be taken back, so whoever observes leaves the second account out.

    Attributes:
        findings: how often what was found, between whom.
    """

    def __init__(self, most: int) -> None:
        """Keep at most so many series of each metric, the one for what is over included."""
        self.findings = FindingCounts(most - 1)
        self._unread = Unread(most)
        self._durations = Histograms(metrics.LLMLAT_CRITICAL_PATH_DURATION, _OF_PATH, most)
        self._phases = Histograms(metrics.LLMLAT_CRITICAL_PATH_PHASE_DURATION, _OF_PHASE, most)
        self._ttft_durations = Histograms(metrics.LLMLAT_TTFT_PATH_DURATION, _OF_PATH, most)
        self._ttft_phases = Histograms(metrics.LLMLAT_TTFT_PATH_PHASE_DURATION, _OF_PHASE, most)
        self._shares = {
            label: Histograms(metric, _OF_PATH, most) for label, metric in _SHARES.items()
        }

    def observe(self, explained: ExplainedTrace) -> None:
        """Count a trace."""
        for root in explained.paths.roots:
            self._observe(root, explained.trace.assumptions.received_ns or root.root.end_ns)
        self.findings.observe(explained)
        if explained.paths.unread:
            self._unread.observe(explained.paths.unread)

    def families(self, start_ns: int) -> list[Family]:
        """All of them by now.

        Args:
            start_ns: when counting began: wall time.
        """
        histograms = (
            self._durations,
            self._phases,
            *self._shares.values(),
            self._ttft_durations,
            self._ttft_phases,
        )
        counters = (self.findings.family(start_ns), self._unread.family(start_ns))
        return [*(one.family(start_ns) for one in histograms), *counters]

    def _observe(self, root: RootPaths, at_ns: int) -> None:
        span = root.root
        service = (span.resource.service or UNKNOWN,)

        def seen(value: float) -> Exemplar:
            return Exemplar(value, at_ns, span.trace_id, span.span_id)

        if root.ttft is not None:
            parts = _parts(root.ttft)
            length_s = _observe_phases(self._ttft_phases, parts, at_ns) / _SECOND_NS
            self._ttft_durations.observe(service, length_s, seen(length_s))
        parts = _parts(root.e2e)
        length_ns = _observe_phases(self._phases, parts, at_ns)
        length_s = length_ns / _SECOND_NS
        self._durations.observe(service, length_s, seen(length_s))
        if length_ns > 0:
            for label, shares in self._shares.items():
                share = _total_ns(parts, label) / length_ns
                shares.observe(service, share, seen(share))


def _parts(path: Path) -> _Parts:
    """The sections of a path by what they are and whose they are."""
    parts: dict[tuple[SectionLabel, str], _Part] = {}
    for section in path.sections:
        key = (section.label, section.span.resource.service)
        part = parts.get(key)
        if part is None:
            parts[key] = _Part(section)
            continue
        part.total_ns += section.duration_ns
        if section.duration_ns > part.largest.duration_ns:
            part.largest = section
    return parts


def _observe_phases(phases: Histograms, parts: _Parts, at_ns: int) -> int:
    """Count what a path consists of; its length in nanoseconds."""
    length_ns = 0
    for (label, service), part in parts.items():
        length_ns += part.total_ns
        value = part.total_ns / _SECOND_NS
        span = part.largest.span
        seen = Exemplar(value, at_ns, span.trace_id, span.span_id)
        phases.observe((label, service or UNKNOWN), value, seen)
    return length_ns


def _total_ns(parts: _Parts, label: SectionLabel) -> int:
    return sum(part.total_ns for (of, _), part in parts.items() if of is label)
