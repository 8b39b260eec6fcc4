"""Skeletons: spans that were sent on already, kept only so that their trace can be explained.

    span as received   ids, times, kind, name, status, flags | attributes     | events | links
    its skeleton       the same                              | those that are read     | notes

A small span is its own skeleton. Of a larger one, which mostly holds somebody's prompt, only what
the stages and the lane read is kept: they say the same of it, byte for byte.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from llmlat_processor.model import Span
from llmlat_processor.producers import EVENTS, KEYS
from llmlat_processor.wire.decoded import WireSpan
from llmlat_processor.wire.encode import encode, sendable
from llmlat_processor.wire.protobuf import decode
from llmlat_semconv import attributes as names
from llmlat_semconv import events

SMALL_BYTES: Final = 1_024
"""Up to here a span is its own skeleton: taking it apart costs more than it saves."""

_OURS: Final = names.LLMLAT_CONTRACT_VERSION.partition(".")[0] + "."
_READ: Final = frozenset(
    {
        names.ERROR_TYPE,
        names.GEN_AI_AGENT_NAME,
        names.GEN_AI_OPERATION_NAME,
        names.GEN_AI_PROVIDER_NAME,
        names.GEN_AI_REQUEST_MODEL,
        names.GEN_AI_REQUEST_STREAM,
        names.GEN_AI_RESPONSE_ID,
        names.GEN_AI_RESPONSE_MODEL,
        names.GEN_AI_TOOL_CALL_ID,
        names.GEN_AI_TOOL_NAME,
        names.RPC_SYSTEM,
        names.RPC_SYSTEM_NAME,
        names.SERVER_ADDRESS,
        *KEYS,
    }
)
"""What is read of others' attributes; of ours all are kept."""

_EVENTS: Final = frozenset(
    {events.LLMLAT_FIRST_CONTENT, events.LLMLAT_JOIN, events.LLMLAT_TOOL_CALL, *EVENTS}
)
_SPEAKS: Final = KeyValue(key=names.RPC_SYSTEM, value=AnyValue(string_value=""))
"""An attribute that says nothing, on a skeleton whose span said something: it is decoded then."""

_TAG: Final = bytes((0xF9, 0xFF, 0xFF, 0xFF, 0x0F))
"""Before the notes: the last field number that there is, which OTLP does not use; eight bytes."""

_notes: Final = Struct("<II")
_NOTES_BYTES: Final = len(_TAG) + _notes.size

_FASTEST: Final = 1
_COMPRESSED: Final = b"x"  # how zlib begins; an export begins with the tag of its first field


class Skeleton(WireSpan):
    """A span that was sent on before: it is explained, and not sent again."""

    __slots__ = ()


def skeleton_of(span: Span) -> Skeleton:
    """The skeleton of a span, without anything that is not read, however small it is.

    It says the same as the span. Only where a trace has another account of the very span, with as
    many attributes, may another one of the two be believed.

    Raises:
        TypeError: it never was on the wire.
    """
    (skeleton,) = unpack(encode([_cut_down(sendable(span))]))
    return skeleton


def pack(spans: Sequence[Span], *, tight: bool = False) -> bytes:
    """The skeletons of spans: an ExportTraceServiceRequest, where each envelope is in once.

    Args:
        spans: spans of one trace that were decoded, skeletons among them or not.
        tight: compress it, which takes five times as long and leaves about a quarter.

    Raises:
        TypeError: a span never was on the wire.
    """
    large = [span for span in spans if len(span.raw) > SMALL_BYTES]
    packed = encode(_without_burden(spans) if large else spans)
    return zlib.compress(packed, _FASTEST) if tight else packed


def _without_burden(spans: Sequence[Span]) -> Iterator[Span]:
    """The large ones cut down; but of several accounts of one span all bytes are compared."""
    accounts = Counter((span.span_id, span.kind) for span in spans)
    for span in spans:
        is_large = len(span.raw) > SMALL_BYTES and accounts[span.span_id, span.kind] == 1
        yield _cut_down(sendable(span)) if is_large else span


def unpack(packed: bytes) -> list[Skeleton]:
    """Skeletons from what `pack` has made, in an order that groups them by envelope."""
    request = zlib.decompress(packed) if packed.startswith(_COMPRESSED) else packed
    return [_as_skeleton(span) for span in decode(request).spans]


def _as_skeleton(span: WireSpan) -> Skeleton:
    span.__class__ = Skeleton  # the same slots: nothing is copied
    assert isinstance(span, Skeleton)
    if span.raw[-_NOTES_BYTES : -_notes.size] == _TAG:
        span.attribute_count, _ = _notes.unpack(span.raw[-_notes.size :])
    return span


def _cut_down(span: WireSpan) -> WireSpan:
    """A span that can be encoded, and nothing else, with what is read of its bytes."""
    if isinstance(span, Skeleton) and span.raw[-_NOTES_BYTES : -_notes.size] == _TAG:
        return span
    cut = WireSpan.__new__(WireSpan)
    cut.origin = span.origin
    cut.raw = _compact(span)
    return cut


def _compact(span: WireSpan) -> bytes:
    """The notes at the end tell how many attributes there were, and tell apart what differed."""
    full = SpanMessage.FromString(span.raw)
    compact = SpanMessage(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id,
        name=span.name,
        kind=full.kind,
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=_read_of(full.attributes) if span.attributes else (),
        flags=span.flags,
    )
    if span.is_error:
        compact.status.code = Status.STATUS_CODE_ERROR
    if span.attributes and names.RPC_SYSTEM not in span.attributes:
        compact.attributes.append(_SPEAKS)
    if span.events:
        compact.events.extend(event for event in full.events if event.name in _EVENTS)
    if span.links:
        compact.links.extend(link for link in full.links if link.attributes)
    notes = _notes.pack(span.attribute_count, zlib.crc32(span.raw))
    return compact.SerializeToString() + _TAG + notes


def _read_of(attributes: Iterable[KeyValue]) -> Sequence[KeyValue]:
    return [pair for pair in attributes if pair.key in _READ or pair.key.startswith(_OURS)]
