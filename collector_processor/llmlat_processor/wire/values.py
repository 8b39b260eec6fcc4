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
from llmlat_processor.wire.slim import Serialized, new_int

_MOST_REMEMBERED: Final = 4_096
"""Entries after which a memory starts afresh: bounded, whatever comes."""

_SHORT: Final = 64
"""Longest KeyValue in bytes that is remembered; longer ones are seldom seen twice."""

_T = TypeVar("_T")

_TEXT, _INT, _DOUBLE = 0x0A, 0x18, 0x21
_double: Final = Struct("<d")

_SCALARS: Final = (
    (bool, "bool_value"),  # before int, which it is as well
    (str, "string_value"),
    (int, "int_value"),
    (float, "double_value"),
    (bytes, "bytes_value"),
)

_pairs: Final[dict[bytes, tuple[str, AttributeValue]]] = {}
"""Short KeyValues -> what they decode to: keys with texts, flags and small integers."""

_texts: Final[dict[bytes, str]] = {}
"""KeyValues of a text up to its size -> their key."""

_numbers: Final[dict[bytes, tuple[str, int, int]]] = {}
"""KeyValues of a larger number up to it -> their key and size, and the least integer that takes
up all of that size, so that nothing else can be in there; 0 for a double."""

_UNKNOWN: Final = ("", -1, 0)


class AttributeReader:
    """Decodes attributes for one thread: its message for integers is read into again and again."""

    __slots__ = ("_integer",)

    def __init__(self) -> None:
        self._integer = new_int()

    def read(self, serialized: Serialized) -> Attributes:
        """Decode KeyValues that are known to be well formed; of equal keys the last one counts."""
        attributes: dict[str, AttributeValue] = {}
        integer = self._integer
        for pair in serialized[:]:  # iterating over protobuf's own container is twice as slow
            known = _pairs.get(pair)
            if known is None:
                at = pair[1] + 5 if len(pair) > 1 else 0
                key, size, least = _numbers.get(pair[:at], _UNKNOWN)
                if size == len(pair):
                    if not least:
                        attributes[key] = _double.unpack_from(pair, at)[0]
                        continue
                    integer.MergeFromString(pair[at - 1 :])
                    number = integer.int_value
                    if number >= least:
                        attributes[key] = number
                        continue
                known = _read(pair)
            key, value = known
            attributes[key] = value
        return attributes


def _read(pair: bytes) -> tuple[str, AttributeValue]:
    """Decode what is not a number of a known key, and remember it."""
    at = pair[1] + 5 if len(pair) > 1 else 0
    key = _texts.get(pair[:at])
    if key is not None and len(pair) == at + 1 + pair[at]:
        decoded: tuple[str, AttributeValue] = key, pair[at + 1 :].decode()
    else:
        message = KeyValue.FromString(pair)
        decoded = message.key, plain(message.value)
        _learn_start(pair, message.key)
    if len(pair) <= _SHORT:
        _remember(_pairs, pair, decoded)
    return decoded


def _learn_start(pair: bytes, key: str) -> None:
    """Remember how it starts, if it is a key and one value, both with a size of one byte."""
    head = KeyValue(key=key).SerializeToString()
    before, size = len(head), len(pair)
    starts_so = 0 < before < _SHORT and size > before + 3 and pair.startswith(head + b"\x12")
    if not starts_so or pair[before + 1] + before + 2 != size:
        return
    at = before + 3
    start, kind, value_size = pair[:at], pair[at - 1], size - at
    if kind == _TEXT:
        _remember(_texts, start, key)
    elif kind == _DOUBLE and value_size == _double.size:
        _remember(_numbers, start, (key, size, 0))
    elif kind == _INT and value_size > 1:
        _remember(_numbers, start, (key, size, 1 << 7 * (value_size - 1)))


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
