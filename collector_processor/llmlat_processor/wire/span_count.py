"""Sees whether an export holds more than can be read at once, before any of it is.

Two bytes are an empty span, which takes a hundred times as much once it is read: a few KB that
came compressed would fill the memory of any machine, however small their limit in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from llmlat_processor.wire.decoded import UndecodableError

MOST_SPANS: Final = 1 << 18
"""Of one export, resources and scopes included; an exporter sends some hundreds or thousands."""

MOST_NODES: Final = 1 << 21
"""Of one export in JSON; each attribute is two."""

_SMALLEST_BYTES: Final = 2
_LONGEST_VARINT: Final = 10
_RESOURCE_SPANS: Final = 1
_SCOPE_SPANS: Final = 2

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


def check_count(request: bytes) -> None:
    """See that there are no more than `MOST_SPANS`; in a broken message as far as it is whole.

    Raises:
        UndecodableError: there are.
    """
    if len(request) <= MOST_SPANS * _SMALLEST_BYTES:
        return
    if next(islice(_parts(request), MOST_SPANS, None), None) is not None:
        raise UndecodableError(f"it holds more than {MOST_SPANS} spans; send smaller batches")


def check_nodes(document: bytes) -> None:
    """The same of an export in JSON: of objects and arrays, which take as much as spans do.

    Raises:
        UndecodableError: there are more than `MOST_NODES`.
    """
    if document.count(b"{") + document.count(b"[") > MOST_NODES:
        raise UndecodableError(f"more than {MOST_NODES} objects and arrays; send smaller batches")


def _parts(request: bytes) -> Iterator[int]:
    """All that it holds down to its spans, one by one."""
    for number, begin, end in _fields(request, 0, len(request)):
        yield number
        inner = _fields(request, begin, end) if number == _RESOURCE_SPANS else ()
        for part, first, last in inner:
            yield part
            spans = _fields(request, first, last) if part == _SCOPE_SPANS else ()
            yield from (span for span, _, _ in spans)


def _fields(content: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, begin and end of each field of a message; both are the same where it has no size."""
    while at < end:
        tag, at = _varint(content, at, end)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            _, at = _varint(content, at, end)
        elif kind == _DELIMITED:
            size, at = _varint(content, at, end)
        elif kind == _FIXED64:
            at += 8
        elif kind == _FIXED32:
            at += 4
        yield tag >> 3, at, min(at + size, end)
        at += size


def _varint(content: bytes, at: int, end: int) -> tuple[int, int]:
    """A number, and where what follows it begins."""
    value = 0
    for shift, place in enumerate(range(at, min(end, at + _LONGEST_VARINT))):
        byte = content[place]
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, place + 1
    return value, min(end, at + _LONGEST_VARINT)
