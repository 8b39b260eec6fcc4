"""The fields of OTLP JSON: for each message its names, and how their values are converted."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

Json = Any
"""Whatever a JSON parser gives."""

Fields = Mapping[str, tuple[str, Callable[[Json], Any]]]
"""Name in JSON -> name in protobuf, and what makes the one from the other."""

_M = TypeVar("_M", bound=Message)

_EXACT_DOUBLE: Final = 2**53

_is_integer: Final = re.compile(r"-?[0-9]{1,20}").fullmatch
"""As JSON writes one; Python's own reading allows spaces, underscores and other digits."""


class FieldError(ValueError):
    """A value that cannot be read; `path` leads to it from wherever it is caught."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path = ""

    def under(self, field: str) -> FieldError:
        """The same, seen from one level further out."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        self.path = f"{field}{joint}{self.path}"
        return self


def fill(message: Callable[..., _M], fields: Fields, node: Json) -> _M:
    """Make a protobuf message from an object; unknown names are passed over.

    Raises:
        FieldError: a value is of the wrong kind, or a known name is spelled as in protobuf.
    """
    if not isinstance(node, dict):
        raise FieldError(f"is {_kind(node)}, not an object")
    filled = {}
    for key, value in node.items():
        if key not in fields:
            _refuse_snake_case(key, fields)
        elif value is not None:
            name, convert = fields[key]
            try:
                filled[name] = convert(value)
            except FieldError as fault:
                raise fault.under(key) from None
    return message(**filled)


def array(value: Json) -> list[Json]:
    """A list as it is."""
    if not isinstance(value, list):
        raise FieldError(f"is {_kind(value)}, not an array")
    return value


def _kind(value: Json) -> str:
    kinds = {
        dict: "an object",
        list: "an array",
        str: "text",
        bool: "a boolean",
        type(None): "null",
    }
    return kinds.get(type(value), "a number")


def _refuse_snake_case(key: str, fields: Fields) -> None:
    head, *rest = key.split("_")
    camel = head + "".join(word.title() for word in rest)
    if rest and camel in fields:
        raise FieldError(f"OTLP JSON writes it {camel}").under(key)


def _each(convert: Callable[[Json], Any], value: Json) -> list[Any]:
    converted = []
    for index, item in enumerate(array(value)):
        try:
            converted.append(convert(item))
        except FieldError as fault:
            raise fault.under(f"[{index}]") from None
    return converted


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise FieldError(f"is {_kind(value)}, not text")
    return value


def _boolean(value: Json) -> bool:
    if not isinstance(value, bool):
        raise FieldError(f"is {_kind(value)}, not true or false")
    return value


def _integer(low: int, high: int, value: Json) -> int:
    """An integer from a number or from text; never from a double that may have been rounded."""
    if isinstance(value, str):
        if not _is_integer(value):
            raise FieldError(f"{value[:40]!r} is not an integer")
        number = int(value)
    elif isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_DOUBLE:
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise FieldError(f"{value!r:.40} is not an exact integer; text keeps all its digits")
    if not low <= number <= high:
        raise FieldError(f"{number} is not between {low} and {high}")
    return number


def _double(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FieldError(f"is {_kind(value)}, not a number")
    try:
        return float(value)  # NaN and Infinity are text in JSON, and float reads them
    except ValueError:
        raise FieldError(f"{value!r:.40} is not a number") from None


def _base64(value: Json) -> bytes:
    """Either alphabet of base64, padded or not, as protobuf's JSON allows."""
    text = _text(value).translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:  # binascii.Error is one; what is not ASCII is a plain one
        raise FieldError("is not base64") from None


def _identity(size: int, value: Json) -> bytes:
    """An id from hexadecimal text, or from an array of byte values (opentelemetry-rust#2065)."""
    if value == "":
        return b""
    try:
        identity = bytes(value) if isinstance(value, list) else _hexadecimal(_text(value))
    except (ValueError, TypeError):
        identity = b""
    if len(identity) != size:
        raise FieldError(
            f"{value!r:.60} is not {2 * size} hexadecimal digits (ids are never base64)"
        )
    return identity


def _hexadecimal(text: str) -> bytes:
    """Python itself passes over spaces between the digits."""
    return b"" if " " in text else bytes.fromhex(text)


def _enum(numbers: Mapping[str, int], value: Json) -> int:
    """A number, known or not; names are tolerated, with their prefix or without."""
    if not isinstance(value, str) or value.lstrip("-").isdigit():
        return _int32(value)
    number = next(
        (n for name, n in numbers.items() if name == value or name.endswith(f"_{value}")), None
    )
    if number is None:
        raise FieldError(f"{value!r:.40} is none of {', '.join(numbers)}")
    return number


def _any_value(value: Json) -> AnyValue:
    return fill(AnyValue, _ANY_VALUE, value)


def _key_value(value: Json) -> KeyValue:
    return fill(KeyValue, _KEY_VALUE, value)


_int32 = partial(_integer, -(2**31), 2**31 - 1)
_int64 = partial(_integer, -(2**63), 2**63 - 1)
_uint32 = partial(_integer, 0, 2**32 - 1)
_uint64 = partial(_integer, 0, 2**64 - 1)
_trace_id = partial(_identity, 16)
_span_id = partial(_identity, 8)
_attributes = partial(_each, _key_value)

_ARRAY: Final[Fields] = {"values": ("values", partial(_each, _any_value))}
_KEY_VALUES: Final[Fields] = {"values": ("values", _attributes)}
_KEY_VALUE: Final[Fields] = {"key": ("key", _text), "value": ("value", _any_value)}
_ANY_VALUE: Final[Fields] = {
    "stringValue": ("string_value", _text),
    "boolValue": ("bool_value", _boolean),
    "intValue": ("int_value", _int64),
    "doubleValue": ("double_value", _double),
    "arrayValue": ("array_value", partial(fill, ArrayValue, _ARRAY)),
    "kvlistValue": ("kvlist_value", partial(fill, KeyValueList, _KEY_VALUES)),
    "bytesValue": ("bytes_value", _base64),
}
_ATTRIBUTES: Final[Fields] = {
    "attributes": ("attributes", _attributes),
    "droppedAttributesCount": ("dropped_attributes_count", _uint32),
}
_STATUS: Final[Fields] = {
    "code": ("code", partial(_enum, dict(Status.StatusCode.items()))),
    "message": ("message", _text),
}
_EVENT: Final[Fields] = {
    **_ATTRIBUTES,
    "timeUnixNano": ("time_unix_nano", _uint64),
    "name": ("name", _text),
}
LINK: Final[Fields] = {
    **_ATTRIBUTES,
    "traceId": ("trace_id", _trace_id),
    "spanId": ("span_id", _span_id),
    "traceState": ("trace_state", _text),
    "flags": ("flags", _uint32),
}
SPAN: Final[Fields] = {
    **LINK,
    "parentSpanId": ("parent_span_id", _span_id),
    "name": ("name", _text),
    "kind": ("kind", partial(_enum, dict(Span.SpanKind.items()))),
    "startTimeUnixNano": ("start_time_unix_nano", _uint64),
    "endTimeUnixNano": ("end_time_unix_nano", _uint64),
    "events": ("events", partial(_each, partial(fill, Span.Event, _EVENT))),
    "droppedEventsCount": ("dropped_events_count", _uint32),
    "links": ("links", array),
    "droppedLinksCount": ("dropped_links_count", _uint32),
    "status": ("status", partial(fill, Status, _STATUS)),
}
_SCOPE: Final[Fields] = {**_ATTRIBUTES, "name": ("name", _text), "version": ("version", _text)}
SCOPE_SPANS: Final[Fields] = {
    "scope": ("scope", partial(fill, InstrumentationScope, _SCOPE)),
    "spans": ("spans", array),
    "schemaUrl": ("schema_url", _text),
}
RESOURCE_SPANS: Final[Fields] = {
    "resource": ("resource", partial(fill, Resource, _ATTRIBUTES)),
    "scopeSpans": ("scope_spans", array),
    "schemaUrl": ("schema_url", _text),
}
