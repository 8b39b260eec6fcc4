"""ExportTraceServiceRequest bytes to spans: one bad span, scope or resource costs nobody else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.model import NO_ATTRIBUTES, Event, Link
from llmlat_processor.producers import READINGS
from llmlat_processor.wire.decoded import NO_BATCH, Decoded, Origin, UndecodableError, WireSpan
from llmlat_processor.wire.envelopes import Envelope, envelope_of
from llmlat_processor.wire.slim import (
    join_envelope,
    join_request,
    new_span,
    parse_details,
    parse_event,
    parse_link,
    split_envelope,
    split_request,
)
from llmlat_processor.wire.values import AttributeReader
from llmlat_semconv import attributes as names

_MEANT: Final = (
    names.LLMLAT_CONTRACT_VERSION.partition(".")[0] + ".",
    names.GEN_AI_OPERATION_NAME.partition(".")[0] + ".",
    names.RPC_SYSTEM,
)
"""How the keys and the names of events begin that mean something here."""

_MEANT_BYTES: Final = tuple(start.encode() for start in _MEANT)

# A key, or an event's name, in a serialized span: its tag, its size, which is one byte, its text.
_has_meaning: Final = re.compile(
    b"[\n\x12].(?:%b)" % b"|".join(re.escape(start.encode()) for start in _MEANT), re.DOTALL
).search

_FLAGS: Final = {flags: flags for flags in (0x100, 0x101, 0x200, 0x201, 0x300, 0x301)}
"""The flags that spans have, one object for each: another would take 32 bytes a span."""

_names: Final[dict[str, str]] = {}
"""The names of spans, the same few again and again: one object for each."""

_MOST_NAMES: Final = 4_096

_NO_TRACE: Final = bytes(16)
_NO_SPAN: Final = bytes(8)
_ERROR: Final = 2


def decode(request: bytes) -> Decoded:
    """The spans of an ExportTraceServiceRequest (or of TracesData, the same on the wire).

    Raises:
        UndecodableError: the bytes are not such a message.
    """
    try:
        parts = split_request(request)
    except DecodeError as error:
        problem = "the bytes are no such message"
        raise UndecodableError(f"not an export of spans in protobuf: {problem}") from error
    trusted = _parses(request)
    reader = SpanReader(trusted=trusted)
    for index, part in enumerate(parts):
        reader.read_resource_spans(part, f"resource_spans[{index}]")
    decoded = reader.decoded
    if not trusted and not decoded.damaged:
        decoded.set_aside("resource_spans", "something that holds no spans is damaged", 0)
    return replace(decoded, request=request) if trusted and not decoded.damaged else decoded


def _parses(request: bytes) -> bool:
    """Whether the full schema accepts it, nested messages and UTF-8 included."""
    try:
        ExportTraceServiceRequest.FromString(request)
    except DecodeError:
        return False
    return True


def _parses_alone(span: bytes) -> bool:
    """Whether the full schema accepts a span where it will stand, depth of nesting included."""
    return _parses(join_request([join_envelope(b"", [join_envelope(b"", [span])])]))


class SpanReader:
    """Collects the spans of one export.

    A `trusted` export was accepted whole by the full schema. The spans of any other are checked
    one by one, which is slower, so that the damaged ones are told from the rest.
    """

    def __init__(self, *, trusted: bool) -> None:
        self.decoded = Decoded()
        self._trusted = trusted
        self._attributes = AttributeReader()

    def read_resource_spans(self, envelope: bytes, where: str) -> None:
        """Read the spans of a serialized ResourceSpans."""
        try:
            resource, scopes = split_envelope(envelope)
        except DecodeError as error:
            self.decoded.set_aside(where, f"not a ResourceSpans message: {error}", 0)
            return
        for index, scope in enumerate(scopes):
            self._read_scope_spans(scope, resource, f"{where}.scope_spans[{index}]")

    def _read_scope_spans(self, envelope: bytes, resource: bytes, where: str) -> None:
        try:
            scope, spans = split_envelope(envelope)
        except DecodeError as error:
            self.decoded.set_aside(where, f"not a ScopeSpans message: {error}", 0)
            return
        # To look through all of them once takes a fifth of looking for keys in each.
        may_mean = any(start in envelope for start in _MEANT_BYTES)
        self.read_spans(enumerate(spans), Origin(resource, scope), where, may_mean=may_mean)

    def read_spans(
        self,
        spans: Iterable[tuple[int, bytes]],
        origin: Origin,
        where: str,
        *,
        may_mean: bool = True,
    ) -> None:
        """Read serialized spans, each with its place in the scope that they came in.

        Args:
            spans: their places and bytes.
            origin: what they came in.
            where: path of that inside the export.
            may_mean: whether one of them may have a name that means something here.
        """
        try:
            envelope = envelope_of(origin)
        except DecodeError as error:
            lost = sum(1 for _ in spans)
            self.decoded.set_aside(where, f"its resource or scope is damaged: {error}", lost)
            return
        first = len(self.decoded.spans)
        self._keep(spans, envelope, where, may_mean=may_mean)
        self._charge(envelope.bytes_for(origin), first)

    def _keep(
        self, spans: Iterable[tuple[int, bytes]], envelope: Envelope, where: str, *, may_mean: bool
    ) -> None:
        """Make spans of what was serialized (in one function: the hot path)."""
        known, resource, scope = envelope
        keep, message = self.decoded.spans.append, new_span()
        sibling_of = b""
        read_attributes, names_seen = self._attributes.read, _names
        is_native = scope in READINGS  # whose names mean something whatever they look like
        blank = WireSpan.__new__  # the many arguments of a call cost more than the stores below
        for index, raw in spans if self._trusted else self._sound(spans, where):
            message.ParseFromString(raw)
            trace_id, span_id = message.trace_id, message.span_id
            parent_id = message.parent_span_id
            if parent_id == sibling_of:
                parent_id = sibling_of  # one object for all of them
            else:
                sibling_of = parent_id
            fault = _fault(trace_id, span_id, parent_id)
            if fault:
                self._set_aside(where, index, fault)
                continue
            span = blank(WireSpan)
            span.trace_id = trace_id
            span.span_id = span_id
            span.parent_id = b"" if parent_id == _NO_SPAN else parent_id
            span.name = names_seen.get(message.name) or _seen(message.name)
            span.kind = message.kind
            span.start_ns = message.start_time_unix_nano
            span.end_ns = message.end_time_unix_nano
            span.resource = resource
            flags = message.flags
            span.flags = _FLAGS.get(flags, flags)
            span.is_error = message.status.code == _ERROR
            span.scope = scope
            span.attributes = NO_ATTRIBUTES
            span.events = span.links = ()
            span.raw = raw
            span.origin = known
            span.borne = span.position = 0
            span.batch = NO_BATCH
            pairs = message.attributes
            span.attribute_count = len(pairs)
            if is_native or (may_mean and _has_meaning(raw)):
                span.attributes = read_attributes(pairs)
                if message.HasField("events") or message.HasField("links"):
                    self._read_details(span, where, index)
            keep(span)

    def _charge(self, size: int, first: int) -> None:
        """Spread what is held because of their envelope over the spans that came in it."""
        charged = self.decoded.spans[first:] if size else ()
        for span in charged:
            span.borne = -(-size // len(charged))

    def _sound(self, spans: Iterable[tuple[int, bytes]], where: str) -> Iterator[tuple[int, bytes]]:
        """Of spans that may be broken those that are not."""
        for index, raw in spans:
            if _parses_alone(raw):
                yield index, raw
            else:
                self._set_aside(where, index, "not a Span message: broken structure or UTF-8")

    def _read_details(self, span: WireSpan, where: str, index: int) -> None:
        """Events and links."""
        details = parse_details(span.raw)
        span.events = [self._event(event) for event in details.events[:]]
        links = [self._link(link) for link in details.links[:]]
        span.links = [link for link in links if link]
        if None in links:
            self._set_aside(where, index, "a link of it has no usable ids", 0)

    def _event(self, serialized: bytes) -> Event:
        message = parse_event(serialized)
        attributes = self._attributes.read(message.attributes)
        return Event(message.name, message.time_unix_nano, attributes)

    def _link(self, serialized: bytes) -> Link | None:
        """A link, or None where its ids cannot be anybody's: the span is kept without it."""
        message = parse_link(serialized)
        trace_id, span_id = message.trace_id, message.span_id
        if _fault(trace_id, span_id, b""):
            return None
        return Link(trace_id, span_id, self._attributes.read(message.attributes))

    def _set_aside(self, where: str, index: int, reason: str, spans: int = 1) -> None:
        self.decoded.set_aside(f"{where}.spans[{index}]", reason, spans)


def _seen(name: str) -> str:
    """Remember a name; not as the interpreter interns them, since some of them never forget one."""
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    _names[name] = name
    return name


def _fault(trace_id: bytes, span_id: bytes, parent_id: bytes) -> str:
    """What is wrong with a span's ids; empty where nothing is."""
    if len(trace_id) != len(_NO_TRACE):
        return f"trace_id has {len(trace_id)} bytes instead of 16"
    if len(span_id) != len(_NO_SPAN):
        return f"span_id has {len(span_id)} bytes instead of 8"
    if parent_id and len(parent_id) != len(_NO_SPAN):
        return f"parent_span_id has {len(parent_id)} bytes instead of 8 or none"
    if trace_id == _NO_TRACE:
        return "trace_id is all zeros"
    return "span_id is all zeros" if span_id == _NO_SPAN else ""
