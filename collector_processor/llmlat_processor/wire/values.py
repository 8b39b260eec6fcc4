"""Attributes between serialized KeyValues and Python values, the frequent shapes by hand.

    0A len key    12 len ( 0A len text | 10 bool | 18 varint | 21 double | anything else )
    KeyValue.key  KeyValue.value

Protobuf's own classes need 1 µs an attribute; most attributes of an LLM trace are short, and
their keys and texts come again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from llmlat_processor.model import Attributes, AttributeValue
from llmlat_processor.wire.slim import Serialized, parse_int

_MOST_REMEMBERED: Final = 4_096
"""Entries after which a memory starts afresh: bounded, whatever comes."""

_SHORT: Final = 64
"""Longest KeyValue in bytes that is remembered; longer ones are seldom seen twice."""

_T = TypeVar("_T")

_TEXT, _BOOL, _INT, _DOUBLE = 0x0A, 0x10, 0x18, 0x21
_double: Final = Struct("<d")

_SCALARS: Final = (
    (bool, "bool_value"),  # before int, which it is as well
    (str, "string_value"),
    (int, "int_value"),
    (float, "double_value"),
    (bytes, "bytes_value"),
)

# Memories. Start of a KeyValue, up to the value's first byte -> its key, that byte, whole size.
_shapes: Final[dict[bytes, tuple[str, int, int]]] = {}
_UNKNOWN: Final = ("", 0, -1)
# Serialized KeyValue with a short text -> what it decodes to.
_pairs: Final[dict[bytes, tuple[str, AttributeValue]]] = {}


def read_attributes(serialized: Serialized) -> Attributes:
    """Decode KeyValues that are known to be well formed; of equal keys the last one counts."""
    # A slice, since iterating over protobuf's own container is twice as slow.
    return dict([_pairs.get(pair) or _read(pair) for pair in serialized[:]])


def _read(pair: bytes) -> tuple[str, AttributeValue]:
    at = pair[1] + 5 if len(pair) > 1 else 0
    key, kind, size = _shapes.get(pair[:at], _UNKNOWN)
    if size == len(pair):
        if kind == _DOUBLE:
            return key, _double.unpack_from(pair, at)[0]
        if kind == _TEXT and pair[at] + at + 1 == size:
            return _remembered(pair, key, pair[at + 1 :].decode())
        if kind == _INT:
            number = parse_int(pair[at - 1 :]).int_value
            if (number.bit_length() + 6) // 7 == size - at:  # it is all that there is
                return key, number
    return _read_any_shape(pair)


def _read_any_shape(pair: bytes) -> tuple[str, AttributeValue]:
    message = KeyValue.FromString(pair)
    value = plain(message.value)
    _learn_shape(pair, message.key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return message.key, value  # numbers seldom come again
    return _remembered(pair, message.key, value)


def _learn_shape(pair: bytes, key: str) -> None:
    """Remember how it starts, if it is a key and one value, both with a length of one byte."""
    head = KeyValue(key=key).SerializeToString()
    at, size = len(head), len(pair)
    starts_so = 0 < at < _SHORT and size > at + 3 and pair.startswith(head + b"\x12")
    if starts_so and pair[at + 1] + at + 2 == size:
        _remember(_shapes, pair[: at + 3], (key, pair[at + 2], size))


def _remembered(pair: bytes, key: str, value: AttributeValue) -> tuple[str, AttributeValue]:
    decoded = (key, value)
    if len(pair) <= _SHORT:
        _remember(_pairs, pair, decoded)
    return decoded


def _remember(memory: dict[bytes, _T], serialized: bytes, decoded: _T) -> None:
    if len(memory) >= _MOST_REMEMBERED:
        memory.clear()
    memory[serialized] = decoded


def read_pairs(pairs: Iterable[KeyValue]) -> dict[str, AttributeValue]:
    """Attributes from parsed KeyValues; of equal keys the last one counts."""
    return {pair.key: plain(pair.value) for pair in pairs}


def plain(value: AnyValue) -> AttributeValue:
    """The Python value of an AnyValue: tuples for arrays, pairs for maps, None for nothing.

    It goes down by itself: the parser refuses messages nested more than 100 deep.
    """
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(plain(inner) for inner in value.array_value.values)
    if kind == "kvlist_value":
        return tuple((pair.key, plain(pair.value)) for pair in value.kvlist_value.values)
    scalar: AttributeValue = getattr(value, kind) if kind else None
    return scalar


def any_value(value: AttributeValue) -> AnyValue:
    """The AnyValue of a Python value; an integer beyond 64 bits raises ValueError."""
    message = AnyValue()
    for kind, field in _SCALARS:
        if isinstance(value, kind):
            setattr(message, field, value)
            return message
    if isinstance(value, Sequence):
        inner = ArrayValue(values=[any_value(element) for element in value])
        message.array_value.CopyFrom(inner)
    return message
