"""What is sent of a trace: every span that was received, once, and what was learned of it.

inline   spans, extended by what was learned, and the lane ──> spans (the lane: or derived)
tap      the lane alone                                     ──> derived
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from llmlat_processor.model import Annotation, ExplainedTrace, Span
from llmlat_processor.settings import Deployment, Mode, Views
from llmlat_processor.views.jaeger_warnings import WARNINGS, jaeger_warnings
from llmlat_processor.views.lane import lane
from llmlat_processor.wire import Request, WireSpan, as_sent, encode_once, encode_within, sendable
from llmlat_processor.wire.skeletons import Skeleton

_NOTHING: Final = Annotation({})


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Spans on their way out.

    Attributes:
        requests: in which they are sent to where spans go; in a tap the lane, so that a journal
            keeps the spans until that has gone.
        derived: in which lanes are sent, where they go elsewhere.
        added: how many of all of them were made here.
        repeated: how many that were received are not among them, since their like is.
        consumed: how many that were received are not sent on, since they were only a copy.
    """

    requests: Sequence[Request]
    derived: Sequence[Request] = ()
    added: int = 0
    repeated: int = 0
    consumed: int = 0


class Preparation:
    """Makes requests of traces; knows neither threads nor books."""

    def __init__(self, deployment: Deployment) -> None:
        """Prepare what is to be sent where this says."""
        self._views: Views = deployment.settings.views
        self._is_tap = deployment.mode is Mode.TAP
        self._is_apart = deployment.derived is not None
        spans = deployment.spans or deployment.derived
        derived = deployment.derived or deployment.spans
        assert spans is not None
        assert derived is not None
        self._request_bytes = spans.delivery.request_bytes
        self._derived_bytes = derived.delivery.request_bytes

    def explained(self, fresh: Sequence[Span], explained: ExplainedTrace) -> Outgoing:
        """A trace with everything that was learned of it.

        Args:
            fresh: those of its spans that have not gone out yet.
            explained: all of it.
        """
        made = self._made(explained, 1)
        if self._is_tap:
            return Outgoing(self._derived(made), added=len(made), consumed=len(fresh))
        spans = _every_span(fresh, explained)
        together = spans if self._is_apart else [*spans, *made]
        requests = [
            *encode_within(self._request_bytes, together, self._annotations(explained)),
        ]
        derived = self._derived(made) if self._is_apart else ()
        repeated = len(fresh) - len(spans)
        return Outgoing(requests, derived, added=len(made), repeated=repeated)

    def as_they_came(self, fresh: Sequence[Span]) -> Outgoing:
        """Spans without anything added to them."""
        if self._is_tap:
            return Outgoing((), consumed=len(fresh))
        once = encode_once(self._request_bytes, fresh)
        if once is not None:
            return Outgoing((once,) if once.spans else (), repeated=len(fresh) - once.spans)
        spans = _without_repeats(fresh)
        requests = [*encode_within(self._request_bytes, spans)]
        return Outgoing(requests, repeated=len(fresh) - len(spans))

    def revised(self, explained: ExplainedTrace, revision: int) -> Outgoing:
        """Another lane of a trace whose spans have all gone."""
        made = self._made(explained, revision)
        requests = self._derived(made)
        if self._is_apart:
            return Outgoing((), requests, added=len(made))
        return Outgoing(requests, added=len(made))

    def _made(self, explained: ExplainedTrace, revision: int) -> Sequence[Span]:
        if not self._views.lane:
            return ()
        return [as_sent(span) for span in lane(explained, revision)]

    def _derived(self, made: Sequence[Span]) -> Sequence[Request]:
        return [*encode_within(self._derived_bytes, made)]

    def _annotations(self, explained: ExplainedTrace) -> Mapping[Span, Annotation]:
        if not self._views.annotations:
            return {}
        if not self._views.jaeger_warnings or not explained.findings:
            return explained.annotations
        annotations = dict(explained.annotations)
        for span, warnings in jaeger_warnings(explained).items():
            said = annotations.get(span, _NOTHING)
            annotations[span] = Annotation({**said.attributes, WARNINGS: warnings}, said.events)
        return annotations


def _every_span(fresh: Sequence[Span], explained: ExplainedTrace) -> Sequence[Span]:
    """Every span that was received, once, in an order that does not depend on how they came.

    Of spans with one id only one is explained, but different ones are all sent on: it is not for
    us to say which of them is true.
    """
    spans: Sequence[Span] = explained.trace.spans
    if any(type(span) is Skeleton for span in spans):  # these have gone out before
        spans = [span for span in spans if type(span) is not Skeleton]
    if len(spans) == len(fresh):
        return spans
    kept = _without_repeats([*spans, *fresh])  # the first of equals is the explained one
    if len(kept) == len(spans):
        return kept
    return sorted(kept, key=_place)


def _without_repeats(spans: Iterable[Span]) -> Sequence[WireSpan]:
    first: dict[tuple[bytes, tuple[bytes, bytes]], WireSpan] = {}
    for span in map(sendable, spans):
        first.setdefault((span.raw, span.origin), span)
    return [*first.values()]


def _place(span: WireSpan) -> tuple[int, bytes, int, bytes, tuple[bytes, bytes]]:
    return span.start_ns, span.span_id, span.kind, span.raw, span.origin
