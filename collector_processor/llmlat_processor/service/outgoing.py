"""What is sent of a trace: every span that was received, once, and what was learned of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from llmlat_processor.finding_counts import FindingCounts
from llmlat_processor.model import Annotation, ExplainedTrace, Span
from llmlat_processor.service.explaining import Explain, explain_now
from llmlat_processor.settings import Views
from llmlat_processor.views.jaeger_warnings import WARNINGS, jaeger_warnings
from llmlat_processor.views.lane import lane
from llmlat_processor.wire import Request, WireSpan, as_sent, encode_within, sendable

_NOTHING: Final = Annotation({})


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Spans on their way out.

    Attributes:
        requests: in which they are sent.
        added: how many of them were made here.
        repeated: how many that were received are not among them, since their like is.
    """

    requests: Sequence[Request]
    added: int
    repeated: int


class Preparation:
    """Makes requests of traces; knows neither threads nor books.

    Attributes:
        findings: how often what was found, between whom.
    """

    def __init__(self, explain: Explain, views: Views, request_bytes: int) -> None:
        """Prepare what is to be sent.

        Args:
            explain: the pipeline.
            views: what is added.
            request_bytes: largest request.
        """
        self._explain = explain
        self._views = views
        self._request_bytes = request_bytes
        self.findings = FindingCounts()

    def explained(self, received: Sequence[Span]) -> Outgoing:
        """A trace with everything that was learned of it."""
        explained = explain_now(self._explain, received)
        self.findings.observe(explained)
        spans = _every_span(received, explained)
        made = [as_sent(span) for span in lane(explained)] if self._views.lane else []
        annotations = self._annotations(explained)
        requests = [*encode_within(self._request_bytes, [*spans, *made], annotations)]
        return Outgoing(requests, len(made), len(received) - len(spans))

    def as_they_came(self, received: Sequence[Span]) -> Outgoing:
        """Spans without anything added to them."""
        spans = _without_repeats(received)
        requests = [*encode_within(self._request_bytes, spans)]
        return Outgoing(requests, 0, len(received) - len(spans))

    def _annotations(self, explained: ExplainedTrace) -> Mapping[Span, Annotation]:
        if not self._views.jaeger_warnings or not explained.findings:
            return explained.annotations
        annotations = dict(explained.annotations)
        for span, warnings in jaeger_warnings(explained).items():
            said = annotations.get(span, _NOTHING)
            annotations[span] = Annotation({**said.attributes, WARNINGS: warnings}, said.events)
        return annotations


def _every_span(received: Sequence[Span], explained: ExplainedTrace) -> Sequence[Span]:
    """Every span that was received, once, in an order that does not depend on how they came.

    Of spans with one id only one is explained, but different ones are all sent on: it is not for
    us to say which of them is true.
    """
    spans = explained.trace.spans
    if len(spans) == len(received):
        return spans
    kept = _without_repeats([*spans, *received])  # the first of equals is the explained one
    if len(kept) == len(spans):
        return kept
    return sorted(kept, key=_place)


def _without_repeats(spans: Sequence[Span]) -> Sequence[WireSpan]:
    first: dict[tuple[bytes, tuple[bytes, bytes]], WireSpan] = {}
    for span in map(sendable, spans):
        first.setdefault((span.raw, span.origin), span)
    return [*first.values()]


def _place(span: WireSpan) -> tuple[int, bytes, int, bytes, tuple[bytes, bytes]]:
    return span.start_ns, span.span_id, span.kind, span.raw, span.origin
