"""The fields of Jaeger's JSON: typed tags, stamps in microseconds, ids without leading zeros."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

import orjson
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from llmlat_processor.model import AttributeValue
from llmlat_processor.wire.json_fields import FieldError, Json, array
from llmlat_processor.wire.values import any_value
from llmlat_semconv import attributes as names

MICROSECOND_NS: Final = 1_000

ARRAYS: Final = frozenset(
    {
        names.GEN_AI_RESPONSE_FINISH_REASONS,
        names.LLMLAT_CRITICAL_PATH_SECTIONS,
        names.LLMLAT_FINDING_WITNESSES,
        names.LLMLAT_JOIN_SPAN_IDS,
        names.LLMLAT_PREFILL_CHUNK_SIZES,
        names.LLMLAT_STREAM_GAP_BUCKET_COUNTS,
    }
)
"""Attributes of the contract that are arrays: in Jaeger's JSON each is a text of JSON."""

LONGEST_SAYING: Final = 200
"""Characters of what a server says that are passed on."""

_T = TypeVar("_T")

LONGEST: Final = 2**64 - 1
"""The last nanosecond that OTLP can say."""

_INT64: Final = 2**63
_EXACT_DOUBLE: Final = 2**53


def saying(words: object) -> str:
    """What a server says, fit for a terminal: one line of it, and nothing that moves a cursor."""
    line = "".join(c if c.isprintable() else " " for c in str(words)[: LONGEST_SAYING + 1])
    return line if len(line) <= LONGEST_SAYING else f"{line[:LONGEST_SAYING]}..."


def pairs(attributes: Iterable[tuple[str, AttributeValue]]) -> list[KeyValue]:
    """Attributes as they stand in a message."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes]


def tags_of(node: Json, key: str) -> Iterator[tuple[str, AttributeValue]]:
    """The tags in a list of an object, each with a value of its own type."""
    return each(node, key, _tag)


def _tag(node: Json) -> tuple[str, AttributeValue]:
    tag = object_of(node)
    key, kind = field(tag, "key", text), str(tag.get("type") or "").lower()
    if not kind and isinstance(tag.get("value"), bool | int | float):
        kind = _UNTYPED[type(tag["value"])]
    value = field(tag, "value", _TYPES.get(kind, text))
    return key, _array(value) if key in ARRAYS else value


def _array(value: AttributeValue) -> AttributeValue:
    """The array that a text stands for; the text where it stands for none."""
    try:
        parsed = orjson.loads(value) if isinstance(value, str) else None
    except orjson.JSONDecodeError:
        return value
    if not isinstance(parsed, list) or not all(map(_is_element, parsed)):
        return value
    return tuple(parsed)


def _is_element(value: Json) -> bool:
    """Whether OTLP can hold it in an array; it has no integers beyond 64 bits."""
    return isinstance(value, str | float) or (isinstance(value, int) and value < _INT64)


def text(value: Json) -> str:
    """Text as it is."""
    if not isinstance(value, str):
        raise FieldError(f"{value!r:.40} is not text")
    return value


def _boolean(value: Json) -> bool:
    if value in (True, "true"):
        return True
    if value in (False, "false"):
        return False
    raise FieldError(f"{value!r:.40} is neither true nor false")


def _integer(value: Json) -> int:
    """An integer from a number or, beyond 2^53, from text; never from a rounded double."""
    exact = isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_DOUBLE
    if isinstance(value, bool) or not (isinstance(value, int | str) or exact):
        raise FieldError(f"{value!r:.40} is not an exact integer")
    try:
        number = int(value)
    except ValueError:
        raise FieldError(f"{value!r:.40} is not an integer") from None
    if not -_INT64 <= number < _INT64:
        raise FieldError(f"{value!r:.40} has more than 64 bits")
    return number


def nanoseconds(value: Json) -> int:
    """Nanoseconds of microseconds."""
    number = _integer(value)
    if not 0 <= number * MICROSECOND_NS <= LONGEST:
        raise FieldError(f"{number} is no number of microseconds")
    return number * MICROSECOND_NS


def _double(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FieldError(f"{value!r:.40} is not a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise FieldError(f"{value!r:.40} is not a number") from None


def _binary(value: Json) -> bytes:
    try:
        return base64.b64decode(text(value), validate=True)
    except binascii.Error:
        raise FieldError("is not base64") from None


_TYPES: Final[Mapping[str, Callable[[Json], AttributeValue]]] = {
    "string": text,
    "bool": _boolean,
    "int64": _integer,
    "float64": _double,
    "binary": _binary,
}
_UNTYPED: Final = {bool: "bool", int: "int64", float: "float64"}


# ── Reading objects ──────────────────────────────────────────────────────────────────────────────


def object_of(node: Json) -> Mapping[str, Json]:
    """An object as it is."""
    if not isinstance(node, dict):
        raise FieldError("is not an object")
    return node


def field(node: Mapping[str, Json], key: str, convert: Callable[[Json], _T]) -> _T:
    """A field of an object; what is wrong with it is told by its name."""
    if node.get(key) is None:
        raise FieldError("is missing").under(key)
    try:
        return convert(node[key])
    except FieldError as fault:
        raise fault.under(key) from None


def each(node: Mapping[str, Json], key: str, convert: Callable[[Json], _T]) -> Iterator[_T]:
    """The elements of a list; none where there is no list."""
    for index, element in enumerate(field(node, key, array) if node.get(key) else ()):
        try:
            yield convert(element)
        except FieldError as fault:
            raise fault.under(f"[{index}]").under(key) from None


def trace_id_of(value: Json) -> bytes:
    """16 bytes; older ids have half of them."""
    return _identity(value, 16)


def span_id_of(value: Json) -> bytes:
    """8 bytes."""
    return _identity(value, 8)


def _identity(value: Json, size: int) -> bytes:
    """An id from hexadecimal text; Jaeger's own clients leave out the zeros that it starts with."""
    digits = text(value)
    try:
        identity = bytes.fromhex(digits.rjust(2 * size, "0"))
    except ValueError:
        identity = b""
    if not digits or len(identity) != size:
        raise FieldError(f"{value!r:.60} is not up to {2 * size} hexadecimal digits")
    return identity
