"""Inflates what came compressed, and stops where it grows larger than it may."""

from __future__ import annotations

import zlib
from typing import Final

IDENTITY: Final = "identity"

_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # zlib's window, and which header
_MOST_PARTS: Final = 1024
"""Of one body: gzip may be several in a row, and a million empty ones are an attack."""

_PIECE: Final = 2**20


class BodyTooLargeError(ValueError):
    """More than is accepted, after decompression."""


class BrokenBodyError(ValueError):
    """It is not compressed as it says; the message tells what is wrong."""


def is_readable(encoding: str) -> bool:
    """Whether a content-encoding can be undone here."""
    return encoding == IDENTITY or encoding in _WINDOWS


def inflated(content: bytes, encoding: str, most_bytes: int) -> bytes:
    """The content as it was before a compression that `is_readable`.

    No more than `most_bytes` and one are ever made of it, whatever it claims to hold.

    Raises:
        BodyTooLargeError: it is larger than `most_bytes`.
        BrokenBodyError: it cannot be undone.
    """
    if encoding == IDENTITY:
        _check(len(content), most_bytes)
        return content
    pieces, size, parts = [], 0, 1
    window = _WINDOWS[encoding]
    inflate = zlib.decompressobj(window)
    for start in range(0, len(content), _PIECE):
        piece = content[start : start + _PIECE]
        while piece:
            if inflate.eof:
                parts += 1
                if parts > _MOST_PARTS:
                    raise BrokenBodyError(f"{encoding} of more than {_MOST_PARTS} parts")
                inflate = zlib.decompressobj(window)
            grown = _grown(inflate, piece, most_bytes + 1 - size, encoding)
            pieces.append(grown)
            size += len(grown)
            _check(size, most_bytes)
            piece = inflate.unused_data
    if not inflate.eof:
        raise BrokenBodyError(f"its {encoding} breaks off")
    return b"".join(pieces)


def _grown(inflate: zlib._Decompress, piece: bytes, room: int, encoding: str) -> bytes:
    try:
        return inflate.decompress(piece, room)
    except zlib.error as error:
        raise BrokenBodyError(f"broken {encoding}: {error}") from error


def _check(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise BodyTooLargeError(
            f"larger than {most_bytes} bytes after decompression; send smaller batches"
        )
