"""Protobuf one level at a time, as bytes that need not be sound; knows nothing of our decoder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

VARINT: Final = 0
FIXED64: Final = 1
DELIMITED: Final = 2
GROUP: Final = 3
END: Final = 4
FIXED32: Final = 5
JUNK: Final = -1
"""No wire type: bytes that stand where a field should."""


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        number: of the field.
        wire: its wire type.
        value: what follows its tag, without the size of what has one.
    """

    number: int
    wire: int
    value: bytes

    @property
    def content(self) -> bytes:
        """As it stands in a message."""
        if self.wire == JUNK:
            return self.value
        tag = varint(self.number << 3 | self.wire)
        return tag + (varint(len(self.value)) if self.wire == DELIMITED else b"") + self.value


def junk(content: bytes) -> Field:
    """Bytes that are written as they are."""
    return Field(0, JUNK, content)


def varint(number: int) -> bytes:
    """A number of any size, in groups of seven bits."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def joined(fields: Iterable[Field]) -> bytes:
    """A message of these fields."""
    return b"".join(field.content for field in fields)


def split(message: bytes) -> list[Field] | None:
    """The fields of a message; None where it has no such structure."""
    placed = split_placed(message)
    return None if placed is None else [field for _, field in placed]


def split_placed(message: bytes) -> list[tuple[int, Field]] | None:
    """The same, each with the place where it starts: its tag may be longer than it need be."""
    fields = []
    at = 0
    try:
        while at < len(message):
            begin = at
            tag, at = _number(message, at)
            end = _end(message, at, tag)
            start = _number(message, at)[1] if tag & 7 == DELIMITED else at
            fields.append((begin, Field(tag >> 3, tag & 7, message[start:end])))
            at = end
    except (IndexError, ValueError):
        return None
    return fields if at == len(message) else None


def _number(message: bytes, at: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    number = shift = 0
    while True:
        group = message[at]
        at += 1
        number |= (group & 0x7F) << shift
        if group < 0x80:
            return number, at
        shift += 7


def _end(message: bytes, at: int, tag: int) -> int:
    """Where the value ends whose tag ends here; a group goes to the end of its end tag."""
    open_groups = 0
    while True:
        wire = tag & 7
        if wire == VARINT:
            at = _number(message, at)[1]
        elif wire in (FIXED64, FIXED32):
            at += 8 if wire == FIXED64 else 4
        elif wire == DELIMITED:
            size, at = _number(message, at)
            at += size
        elif wire == GROUP:
            open_groups += 1
        elif wire == END:
            open_groups -= 1
        if wire > FIXED32 or open_groups < 0 or at > len(message):
            raise ValueError
        if not open_groups:
            return at
        tag, at = _number(message, at)


Schema = Mapping[int, "Schema"]
"""Which fields of a message are messages, and of which kind."""

_ANY: Final[dict[int, Schema]] = {}
_PAIR: Final[Schema] = {2: _ANY}
_ANY.update({5: {1: _ANY}, 6: {1: _PAIR}})
SPAN: Final[Schema] = {9: _PAIR, 11: {3: _PAIR}, 13: {4: _PAIR}, 15: {}}
REQUEST: Final[Schema] = {1: {1: {1: _PAIR}, 2: {1: {3: _PAIR}, 2: SPAN}}}
"""ExportTraceServiceRequest."""
