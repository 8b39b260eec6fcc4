"""Attributes to serialized KeyValues by hand; what is seldom is left to protobuf's own classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from struct import Struct
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from llmlat_processor.model import AttributeValue
from llmlat_processor.wire.fields import FIXED64, field, varint
from llmlat_processor.wire.values import any_value

DOUBLE: Final = Struct("<d")

_SHORT: Final = 32
"""Longest text that is remembered."""

_TEXT: Final = AnyValue.STRING_VALUE_FIELD_NUMBER
_TRUE: Final = bytes((AnyValue.BOOL_VALUE_FIELD_NUMBER << 3, 1))
_FALSE: Final = bytes((AnyValue.BOOL_VALUE_FIELD_NUMBER << 3, 0))
_INT: Final = bytes((AnyValue.INT_VALUE_FIELD_NUMBER << 3,))
_INT_END: Final = 1 << 63
_DOUBLE: Final = bytes((AnyValue.DOUBLE_VALUE_FIELD_NUMBER << 3 | FIXED64,))
_ARRAY: Final = AnyValue.ARRAY_VALUE_FIELD_NUMBER
_ELEMENT: Final = ArrayValue.VALUES_FIELD_NUMBER
_VALUE: Final = KeyValue.VALUE_FIELD_NUMBER


def attributes(number: int, said: Mapping[str, AttributeValue]) -> bytes:
    """Attributes as a repeated field."""
    return b"".join([attribute(number, key, value) for key, value in said.items()])


def attribute(number: int, key: str, value: AttributeValue) -> bytes:
    """A KeyValue as a field; an integer beyond 64 bits raises ValueError."""
    if isinstance(value, str) and len(value) <= _SHORT:
        return _recurring(number, key, value)
    return field(number, _key_value(key, value))


@lru_cache(maxsize=4_096)
def _recurring(number: int, key: str, value: str) -> bytes:
    """Short texts: mostly words of the contract."""
    return field(number, _key_value(key, value))


def _key_value(key: str, value: AttributeValue) -> bytes:
    return _key(key) + field(_VALUE, _any_value(value))


@lru_cache(maxsize=1_024)
def _key(key: str) -> bytes:
    return KeyValue(key=key).SerializeToString()


def _any_value(value: AttributeValue) -> bytes:
    if isinstance(value, str):
        return field(_TEXT, value.encode())
    if isinstance(value, float):
        return _DOUBLE + DOUBLE.pack(value)
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, int) and 0 <= value < _INT_END:
        return _INT + varint(value)
    if isinstance(value, (list, tuple)):
        texts = [each for each in value if isinstance(each, str)]
        if len(texts) == len(value):
            return _array(texts)
    return any_value(value).SerializeToString()


def _array(texts: list[str]) -> bytes:
    elements = [field(_ELEMENT, field(_TEXT, text.encode())) for text in texts]
    return field(_ARRAY, b"".join(elements))
