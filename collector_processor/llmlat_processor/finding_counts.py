"""How often each kind of finding was made between which services; bounded, what is over is told.

A metric must not have as many series as there are names in the world: beyond the bound, findings
count under one more row of their kind, in which no service has a name. Of the metric these rows
are the one series for all that is over.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias

from llmlat_processor.metrics.series import labelled
from llmlat_processor.model import ExplainedTrace, Finding, Span
from llmlat_processor.model.counts import FindingCount, in_order
from llmlat_processor.model.families import OVERFLOW as OVER
from llmlat_processor.model.families import Exemplar, Family, Labels, Number
from llmlat_processor.written import cut
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import LLMLAT_FINDING_COUNT
from llmlat_semconv.values import FindingKind

SERIES: Final = 1_000
OVERFLOW: Final = "(others)"
"""In the place of both names, once there are too many pairs of them."""

_Key: TypeAlias = tuple[FindingKind, str, str]


class FindingCounts:
    """Counters by kind, caller's service and callee's service."""

    def __init__(self, series: int = SERIES) -> None:
        """Keep at most so many of them apart, and one more for each kind."""
        self._most = series
        self._counts: Counter[_Key] = Counter()
        self._last: dict[_Key, Exemplar] = {}
        self._apart = 0

    def observe(self, explained: ExplainedTrace) -> None:
        """Count the findings of a trace."""
        if not explained.findings:
            return
        trace = explained.trace
        spans = {span.span_id: span for span in trace.spans}
        at_ns = trace.assumptions.received_ns or max(span.end_ns for span in trace.spans)
        for finding in explained.findings:
            key = self._count(finding.kind, *_between(finding, spans))
            self._last[key] = Exemplar(1, at_ns, trace.trace_id, finding.of)

    def rows(self) -> list[FindingCount]:
        """All counters: kind by kind, the greatest first."""
        counts = list(self._counts.items())  # at once: another thread may be counting
        return in_order(FindingCount(*key, count) for key, count in counts)

    def family(self, start_ns: int) -> Family:
        """The same as a metric: one series for all that is over, of whatever kind."""
        sums: dict[Labels, Number] = {}
        for key, count in list(self._counts.items()):
            labels = _labels(key)
            total = count + (sums[labels].value if labels in sums else 0)
            sums[labels] = Number(labels, total, self._last.get(key))
        return Family(LLMLAT_FINDING_COUNT, start_ns, tuple(sums.values()))

    def _count(self, kind: FindingKind, caller: str, callee: str) -> _Key:
        key = (kind, caller, callee)
        if key not in self._counts:
            if self._apart >= self._most:
                key = (kind, OVERFLOW, OVERFLOW)
            else:
                self._apart += 1
        self._counts[key] += 1
        return key


def _labels(key: _Key) -> Labels:
    kind, caller, callee = key
    if caller == callee == OVERFLOW:
        return OVER
    return labelled(
        (
            (names.LLMLAT_FINDING_KIND, kind.value),
            (names.LLMLAT_FINDING_CALLER_SERVICE, caller),
            (names.LLMLAT_FINDING_CALLEE_SERVICE, callee),
        )
    )


def _between(finding: Finding, spans: dict[bytes, Span]) -> tuple[str, str]:
    """Services of caller and callee: of the span that it is about, and of its parent.

    Where clocks contradict each other it is two processes that do, however their spans are
    related: those that the first message of the proof was between.
    """
    if finding.proof:
        first = finding.proof[0]
        return _service(spans.get(first.left)), _service(spans.get(first.arrived))
    about = spans.get(finding.of)
    parent = None if about is None else spans.get(about.parent_id)
    return _service(parent), _service(about)


def _service(span: Span | None) -> str:
    return "" if span is None else cut(span.resource.service)
