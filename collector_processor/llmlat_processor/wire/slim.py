"""Protobuf classes that know only the fields of OTLP that are read; all else stays in bytes.

A nested message declared as `bytes` costs nothing until somebody asks for it, and keeps its very
bytes. What is not declared at all stays among the unknown fields and is written out again.
Every parser here raises `google.protobuf.message.DecodeError` for bytes that are not its message.

Making a message costs more than reading into one that there is. Those of the hot path are made
once, by whoever reads an export, and read into again and again; no two threads share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

_PACKAGE: Final = "llmlat_slim"
_MANY: Final = Field.LABEL_REPEATED
_ONE: Final = Field.LABEL_OPTIONAL

# message -> (field, its number in OTLP, type, label)
_MESSAGES: Final = {
    "Request": [("resource_spans", 1, Field.TYPE_BYTES, _MANY)],
    # ResourceSpans and ScopeSpans alike: who, what of them, schema_url. All of them repeated,
    # so that a header that was written in pieces keeps its pieces.
    "Envelope": [
        ("header", 1, Field.TYPE_BYTES, _MANY),
        ("parts", 2, Field.TYPE_BYTES, _MANY),
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

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name


class _Envelope(Protocol):
    parts: Serialized

    def ClearField(self, field_name: str) -> None: ...  # noqa: N802 - protobuf's name
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
        for field, number, kind, label in fields:
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if kind == Field.TYPE_MESSAGE:
                added.type_name = f".{_PACKAGE}.{field.capitalize()}"
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
    request = _parse_request(b"")
    request.resource_spans.extend(resource_spans)
    return request.SerializeToString()


def split_envelope(envelope: bytes) -> tuple[bytes, list[bytes]]:
    """A ResourceSpans without its scopes, and these; or a ScopeSpans without its spans."""
    message = _parse_envelope(envelope)
    parts = message.parts[:]
    message.ClearField("parts")
    return message.SerializeToString(), parts


def join_envelope(emptied: bytes, parts: Iterable[bytes]) -> bytes:
    """Put parts back into what `split_envelope` has left."""
    message = _parse_envelope(emptied)
    message.parts.extend(parts)
    return message.SerializeToString()
