"""Protobuf classes that know only the fields of OTLP that are read; all else stays in bytes.

A nested message declared as `bytes` costs nothing until somebody asks for it, and keeps its very
bytes. What is not declared at all stays among the unknown fields and is written out again.
Every parser here raises `google.protobuf.message.DecodeError` for bytes that are not its message.

Making a message costs more than reading into one that there is. Those of the hot path are made
once, by whoever reads an export, and read into again and again; no two threads share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, Protocol

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from llmlat_processor.wire.fields import field, head

_MOST_REMEMBERED_BYTES: Final = 64 << 10
"""A larger envelope is not remembered, or it would stay when its spans have long gone."""

_PACKAGE: Final = "llmlat_slim"
_RESOURCE_SPANS: Final = 1
_PARTS: Final = 2
_MANY: Final = Field.LABEL_REPEATED
_ONE: Final = Field.LABEL_OPTIONAL

# message -> (field, its number in OTLP, type, label)
_MESSAGES: Final = {
    "Request": [("resource_spans", _RESOURCE_SPANS, Field.TYPE_BYTES, _MANY)],
    # ResourceSpans and ScopeSpans alike: who, what of them, schema_url. All of them repeated,
    # so that a header that was written in pieces keeps its pieces.
    "Envelope": [
        ("header", 1, Field.TYPE_BYTES, _MANY),
        ("parts", _PARTS, Field.TYPE_BYTES, _MANY),
        ("schema_url", 3, Field.TYPE_BYTES, _MANY),
    ],
    "Status": [("code", 3, Field.TYPE_INT32, _ONE)],
    "Span": [
        ("trace_id", 1, Field.TYPE_BYTES, _ONE),
        ("span_id", 2, Field.TYPE_BYTES, _ONE),
        ("parent_span_id", 4, Field.TYPE_BYTES, _ONE),
        ("name", 5, Field.TYPE_STRING, _ONE),
        ("kind", 6, Field.TYPE_INT32, _ONE),
        ("start_time_unix_nano", 7, Field.TYPE_FIXED64, _ONE),
        ("end_time_unix_nano", 8, Field.TYPE_FIXED64, _ONE),
        ("attributes", 9, Field.TYPE_BYTES, _MANY),
        # Whether there are any, which is quickly said of a field that is not repeated.
        ("events", 11, Field.TYPE_BYTES, _ONE),
        ("links", 13, Field.TYPE_BYTES, _ONE),
        ("status", 15, Field.TYPE_MESSAGE, _ONE),
        ("flags", 16, Field.TYPE_FIXED32, _ONE),
    ],
    # What few spans have: the same message as Span.
    "Details": [
        ("events", 11, Field.TYPE_BYTES, _MANY),
        ("links", 13, Field.TYPE_BYTES, _MANY),
    ],
    "Event": [
        ("time_unix_nano", 1, Field.TYPE_FIXED64, _ONE),
        ("name", 2, Field.TYPE_STRING, _ONE),
        ("attributes", 3, Field.TYPE_BYTES, _MANY),
    ],
    "Link": [
        ("trace_id", 1, Field.TYPE_BYTES, _ONE),
        ("span_id", 2, Field.TYPE_BYTES, _ONE),
        ("attributes", 4, Field.TYPE_BYTES, _MANY),
    ],
    "IntValue": [("int_value", 3, Field.TYPE_INT64, _ONE)],
}


class Serialized(Protocol):
    """A repeated field of nested messages, each still in its bytes."""

    def __len__(self) -> int: ...
    def __getitem__(self, span: slice, /) -> list[bytes]: ...
    def extend(self, messages: Iterable[bytes], /) -> None:
        """Append messages."""


class _Request(Protocol):
    resource_spans: Serialized


class _Envelope(Protocol):
    parts: Serialized

    def ClearField(self, field_name: str) -> None: ...  # noqa: N802 - protobuf's name
    def DiscardUnknownFields(self) -> None: ...  # noqa: N802 - protobuf's name
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name


class StatusMessage(Protocol):
    """Status: 2 is an error."""

    code: int


class SpanMessage(Protocol):
    """Span."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    name: str
    kind: int
    start_time_unix_nano: int
    end_time_unix_nano: int
    attributes: Serialized
    status: StatusMessage
    flags: int

    def HasField(self, field_name: str) -> bool:  # noqa: N802 - protobuf's name
        """Whether the span has it."""

    def ParseFromString(self, serialized: bytes) -> int:  # noqa: N802 - protobuf's name
        """Become this span; DecodeError where it is none."""


class DetailsMessage(Protocol):
    """Span, as far as few spans have it."""

    events: Serialized
    links: Serialized


class EventMessage(Protocol):
    """Span.Event."""

    time_unix_nano: int
    name: str
    attributes: Serialized


class LinkMessage(Protocol):
    """Span.Link."""

    trace_id: bytes
    span_id: bytes
    attributes: Serialized


class IntMessage(Protocol):
    """An AnyValue that is known to hold an integer."""

    int_value: int

    def MergeFromString(self, serialized: bytes) -> int:  # noqa: N802 - protobuf's name
        """Take over the integer of a serialized AnyValue."""


def _pool() -> descriptor_pool.DescriptorPool:
    """A pool of our own: the process may hold the full OTLP messages in the default one."""
    schema = descriptor_pb2.FileDescriptorProto(
        name=f"{_PACKAGE}.proto",
        package=_PACKAGE,
        syntax="proto2",  # on the wire the same as OTLP's proto3, but it tells absent from zero
    )
    for name, fields in _MESSAGES.items():
        message = schema.message_type.add(name=name)
        for own, number, kind, label in fields:
            added = message.field.add(name=own, number=number, type=kind, label=label)
            if kind == Field.TYPE_MESSAGE:
                added.type_name = f".{_PACKAGE}.{own.capitalize()}"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(schema.SerializeToString())
    return pool


_POOL: Final = _pool()


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


_parse_request: Final[Callable[[bytes], _Request]] = _message("Request").FromString
_parse_envelope: Final[Callable[[bytes], _Envelope]] = _message("Envelope").FromString
new_span: Final[Callable[[], SpanMessage]] = _message("Span")
new_int: Final[Callable[[], IntMessage]] = _message("IntValue")
parse_details: Final[Callable[[bytes], DetailsMessage]] = _message("Details").FromString
parse_event: Final[Callable[[bytes], EventMessage]] = _message("Event").FromString
parse_link: Final[Callable[[bytes], LinkMessage]] = _message("Link").FromString


def split_request(request: bytes) -> list[bytes]:
    """The ResourceSpans of an ExportTraceServiceRequest (or of TracesData)."""
    return _parse_request(request).resource_spans[:]


def join_request(resource_spans: Iterable[bytes]) -> bytes:
    """An ExportTraceServiceRequest of these ResourceSpans."""
    return b"".join([field(_RESOURCE_SPANS, each) for each in resource_spans])


def split_envelope(envelope: bytes) -> tuple[bytes, list[bytes]]:
    """A ResourceSpans without its scopes, and these; or a ScopeSpans without its spans."""
    message = _parse_envelope(envelope)
    parts = message.parts[:]
    message.ClearField("parts")
    return message.SerializeToString(), parts


def join_envelope(emptied: bytes, parts: Iterable[bytes]) -> bytes:
    """Put parts back into what `split_envelope` has left."""
    around = _around if len(emptied) <= _MOST_REMEMBERED_BYTES else _around.__wrapped__
    before, after = around(emptied)
    pieces = [before]
    for part in parts:  # a part is copied once, into the whole
        size = len(part)
        pieces += (_PART_HEADS[size] if size < _MOST_HEADS else head(_PARTS, size), part)
    pieces.append(after)
    return b"".join(pieces)


_MOST_HEADS: Final = 2_048
_PART_HEADS: Final = [head(_PARTS, size) for size in range(_MOST_HEADS)]


@lru_cache(maxsize=256)
def _around(emptied: bytes) -> tuple[bytes, bytes]:
    """What stands before the parts of an envelope, and what stands after them."""
    message = _parse_envelope(emptied)
    whole = message.SerializeToString()
    message.ClearField("schema_url")
    message.DiscardUnknownFields()
    before = message.SerializeToString()
    return before, whole[len(before) :]
