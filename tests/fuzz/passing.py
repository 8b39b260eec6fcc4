"""Spans through window, pipeline and encoder as the processor leads them, and what comes out.

The spans of a sound client come beside them, one by one between theirs: those must not notice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from random import Random
from typing import Final, NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from llmlat_processor.pipeline import process
from llmlat_processor.service.explaining import explain_now
from llmlat_processor.service.outgoing import Outgoing, Preparation
from llmlat_processor.service.releasing import why_not
from llmlat_processor.settings import (
    INLINE,
    Delivery,
    Deployment,
    Destination,
    Explained,
    Views,
)
from llmlat_processor.window import SECOND_NS, Limits, Released, Why, Window
from llmlat_processor.wire import WireSpan, decode
from llmlat_processor.written import OWN_SCOPE
from tests.fuzz.oracle import parsed, resource_as_written, same_spans, scope_as_written
from tests.fuzz.protobuf_fields import DELIMITED, Field, split, split_placed
from tests.fuzz.sound import NEIGHBOUR, sound_request

REQUEST_BYTES: Final = 64 << 10
_ADDED: Final = (9, 11)
"""Attributes and events: what we may append to a span."""

_PLAIN: Final = (
    "trace_id", "span_id", "parent_id", "name", "kind", "start_ns", "end_ns", "flags", "is_error",
    "scope", "attribute_count", "raw", "origin",
)  # fmt: skip
_RESOURCE: Final = ("service", "process", "domain", "weak")

DEPLOYMENT: Final = Deployment(
    spans=Destination("nobody:4317", delivery=Delivery(request_bytes=REQUEST_BYTES)),
    settings=replace(INLINE, views=Views(lane=True, jaeger_warnings=True)),
)
_LONG_NS: Final = 100 * SECOND_NS
_PAUSES_NS: Final = (1, 5 * SECOND_NS, 70 * SECOND_NS)
_LATE: Final = 0.25
"""How often a part of the spans comes later."""


class Passed(NamedTuple):
    """A span as it was or as it went out.

    Attributes:
        resource: the ResourceSpans that it is in, without scopes, as the oracle writes it.
        scope: the ScopeSpans, likewise.
        raw: its bytes.
    """

    resource: bytes
    scope: bytes
    raw: bytes


class Way:
    """The way of one process, for one batch after the other."""

    def __init__(self) -> None:
        self._preparation = Preparation(DEPLOYMENT)

    def through(
        self, spans: Sequence[WireSpan], late: Sequence[WireSpan] = (), after_ns: int = 0
    ) -> Sequence[Outgoing]:
        """Everything that is sent of these spans, trace by trace.

        Args:
            spans: what comes first.
            late: what comes later.
            after_ns: how much later.
        """
        window = Window(Limits())
        released: list[Released] = []
        for span in spans:
            released += window.feed(span, 0)
        released += window.expire(after_ns)
        for span in late:
            released += window.feed(span, after_ns)
        released += window.expire(after_ns + _LONG_NS)
        released += window.flush(after_ns + _LONG_NS)
        return [self._prepared(one) for one in released if one.why is not Why.REPEATED]

    def _prepared(self, released: Released) -> Outgoing:
        if why_not(released, Explained.ALL):
            return self._preparation.as_they_came(released.fresh)
        explained = explain_now(process, released.spans)
        if released.why is Why.REVISED:
            return self._preparation.revised(explained, released.revision)
        return self._preparation.explained(released.fresh, explained)


class Neighbour:
    """A client whose requests are sound, and what is read and sent of them when it is alone."""

    def __init__(self, seed: int, way: Way) -> None:
        self._message = sound_request(Random(seed), NEIGHBOUR)
        self._request = self._message.SerializeToString()
        decoded = decode(self._request)
        if not same_spans(decoded, self._message):
            raise AssertionError(f"the sound request of seed {seed} is not read as it is")
        self._read = [*map(_said, decoded.spans)]
        self._sent = Counter(_outputs(way.through(decoded.spans)))

    def spans(self) -> list[WireSpan]:
        """Its spans, as they are decoded now."""
        return decode(self._request).spans

    def faults(self, spans: Sequence[WireSpan], sent: Sequence[Passed]) -> Iterator[str]:
        """What is otherwise than when it is alone."""
        if [*map(_said, spans)] != self._read:
            yield "a sound request is read otherwise than before"
        if Counter(sent) != self._sent:
            yield "what is sent of a sound trace is otherwise than before"


def faults_of_passing(
    spans: Sequence[WireSpan], neighbour: Neighbour, way: Way, random: Random
) -> Iterator[tuple[str, str]]:
    """What is wrong with what is sent of spans, or of those beside them; check and words."""
    theirs = neighbour.spans()
    soon = random.randint(0, len(spans)) if random.random() < _LATE else len(spans)
    mixed = [one for one in chain(*zip_longest(spans[:soon], theirs)) if one is not None]
    outgoing = way.through(mixed, spans[soon:], random.choice(_PAUSES_NS))
    refused = [one for out in outgoing for one in out.requests if parsed(one.content) is None]
    if refused:
        yield "passing", "the oracle refuses what is sent"
        return
    sent = _outputs(outgoing)
    beside = [one for one in sent if _trace_id(one.raw).startswith(NEIGHBOUR)]
    yield from (("neighbour", words) for words in neighbour.faults(theirs, beside))
    ours = Counter(one for one in sent if not _trace_id(one.raw).startswith(NEIGHBOUR))
    yield from (("passing", words) for words in _unlike(spans, ours))
    counted = sum(one.spans for out in outgoing for one in out.requests)
    added = sum(out.added for out in outgoing)
    if counted != len(sent) or added != sum(_is_own(one) for one in sent):
        yield "passing", f"{counted} spans sent and {added} added, by the books of {len(sent)}"


def _unlike(spans: Sequence[WireSpan], sent: Counter[Passed]) -> Iterator[str]:
    """Every span must be sent once, with its bytes first, and then what was added to it."""
    first = {(span.raw, span.origin): span for span in spans}
    expected = Counter(map(_arrived, first.values()))
    exact = expected & sent
    expected -= exact
    for one in (sent - exact).elements():
        if _is_own(one):
            continue
        original = next((o for o in _origins_of(one) if expected[o]), None)
        if original is None:
            yield f"{one.raw.hex()} was sent and never came"
            return
        expected[original] -= 1
    if +expected:
        yield f"{sum(expected.values())} spans were not sent as they came"


def _origins_of(one: Passed) -> Iterator[Passed]:
    """What it may have been before something was added; the longest first."""
    fields = split_placed(one.raw) or []
    while fields and fields[-1][1].number in _ADDED:
        start, _ = fields.pop()
        yield one._replace(raw=one.raw[:start])


def _arrived(span: WireSpan) -> Passed:
    resource, scope = span.origin
    return Passed(resource_as_written(resource), scope_as_written(scope), span.raw)


def _outputs(outgoing: Sequence[Outgoing]) -> list[Passed]:
    """Every span of what is sent, read without our own decoder."""
    passed = []
    for request in (request for out in outgoing for request in out.requests):
        for resource_spans in split(request.content) or ():
            resource, scopes = _opened(resource_spans)
            outer = resource_as_written(resource)
            for scope_spans in scopes:
                scope, spans = _opened(scope_spans)
                inner = scope_as_written(scope)
                passed += [Passed(outer, inner, span.value) for span in spans]
    return passed


def _opened(envelope: Field) -> tuple[bytes, list[Field]]:
    """What is in an envelope: its own fields as they are written, and its parts."""
    own, parts = [], []
    placed = split_placed(envelope.value) or []
    ends = [start for start, _ in placed[1:]] + [len(envelope.value)]
    for (start, field), end in zip(placed, ends, strict=True):
        if field.number == 2 and field.wire == DELIMITED:
            parts.append(field)
        else:
            own.append(envelope.value[start:end])
    return b"".join(own), parts


def _trace_id(raw: bytes) -> bytes:
    return Span.FromString(raw).trace_id


def _is_own(one: Passed) -> bool:
    return OWN_SCOPE.encode() in one.scope


def _said(span: WireSpan) -> str:
    """All that the model has of a span, as text."""
    plain = [getattr(span, name) for name in _PLAIN]
    events = [(event.name, event.at_ns, dict(event.attributes)) for event in span.events]
    links = [(link.trace_id, link.span_id, dict(link.attributes)) for link in span.links]
    resource = [dict(span.resource.attributes), *(getattr(span.resource, n) for n in _RESOURCE)]
    return repr((*plain, resource, dict(span.attributes), events, links))
