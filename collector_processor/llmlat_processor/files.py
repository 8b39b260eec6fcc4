"""Spans from files, whatever form they are in; what is damaged is told by file and line.

{"resourceSpans": ...}    JSON, on one line or many; also an array of such
{"result": ...}           the same in an answer of Jaeger's API v3
{"data": ...}             Jaeger's own JSON: its other API, and the download of its UI
one such object a line    what the collector's file exporter writes
0A ...                    ExportTraceServiceRequest, TracesData
length | message | ...    what the collector's file exporter writes as `proto`
"""

from __future__ import annotations

import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from llmlat_processor.wire import (
    Damaged,
    Decoded,
    UndecodableError,
    WireSpan,
    decode,
    decode_document,
)

STDIN: Final = "-"
_LENGTH: Final = 4
_COMPRESSED: Final = {
    b"\x1f\x8b": "gunzip",
    b"\x28\xb5\x2f\xfd": "unzstd",
    b"BZh": "bunzip2",
    b"\xfd7zXZ": "unxz",
    b"PK\x03\x04": "unzip",
}
_READS: Final = (
    "what can be read is OTLP: JSON, lines of JSON, or protobuf; and JSON that Jaeger answers with"
)


class UnreadableFileError(ValueError):
    """Nothing could be read from a file; the message names it, and what to do."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The spans of a file in their order, and what was set aside, with file and line."""

    spans: list[WireSpan] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)


def load(path: str, on_part: Callable[[int], None] = lambda _spans: None) -> Loaded:
    """Read every span of a file; its form is told by its content.

    Args:
        path: of a file; `-` is standard input.
        on_part: called with the number of spans so far, before each part is decoded.

    Raises:
        UnreadableFileError: there is no such file, or no part of it is OTLP.
    """
    name = "standard input" if path == STDIN else path
    if path == STDIN and sys.stdin is None:
        raise UnreadableFileError(f"{name}: it is closed")
    try:
        content = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise UnreadableFileError(f"{name}: {error.strerror or error}") from error
    return read(content, name, on_part)


def read(content: bytes, name: str, on_part: Callable[[int], None] = lambda _spans: None) -> Loaded:
    """Read every span of what a file holds, or of what somebody has answered.

    Args:
        content: in any of the forms.
        name: what it is called in what is said of it.
        on_part: as for `load`.

    Raises:
        UnreadableFileError: no part of it can be read.
    """
    return _read_parts(_parts(content.removeprefix(BOM_UTF8), name), on_part)


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a file that is decoded by itself, and what leads to it."""

    where: str
    content: bytes
    decode: Callable[[bytes], Decoded]


def _read_parts(parts: Iterable[_Part], on_part: Callable[[int], None]) -> Loaded:
    """Decode every part; one that cannot be read costs only itself, unless it is all there is."""
    loaded = Loaded()
    faults = []
    for part in parts:
        on_part(len(loaded.spans))
        try:
            decoded = part.decode(part.content)
        except UndecodableError as error:
            faults.append(Damaged(part.where, str(error), spans=0))
            continue
        loaded.spans.extend(decoded.spans)
        loaded.damaged.extend(
            replace(damaged, where=f"{part.where}: {damaged.where}") for damaged in decoded.damaged
        )
    if faults and not loaded.spans and not loaded.damaged:
        raise UnreadableFileError(f"{faults[0]} ({_READS})")
    loaded.damaged.extend(faults)
    return loaded


def _parts(content: bytes, name: str) -> Iterable[_Part]:
    if not content.strip():
        raise UnreadableFileError(f"{name}: it is empty")
    for magic, program in _COMPRESSED.items():
        if content.startswith(magic):
            raise UnreadableFileError(f"{name}: it is compressed; unpack it first, with {program}")
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise UnreadableFileError(
            f"{name}: it is UTF-16; make it UTF-8 first, with iconv -f UTF-16 -t UTF-8"
        )
    if _is_json(content):
        return _json_parts(content, name)
    if content[0] == 0:  # no field of protobuf has the number 0
        return _framed_parts(content, name)
    return [_Part(name, content, decode)]


def _is_json(content: bytes) -> bool:
    if content.lstrip()[:1] not in (b"{", b"["):
        return False
    if not content.startswith(b"\n"):
        return True
    try:  # 0A 7B is white space and a brace, but also the start of 123 bytes of protobuf
        return not decode(content).spans
    except UndecodableError:
        return True


def _json_parts(content: bytes, name: str) -> Iterable[_Part]:
    numbered = enumerate(content.split(b"\n"), start=1)
    lines = [(number, line) for number, line in numbered if line.strip()]
    # Indented JSON has no second line that starts with a brace.
    if len(lines) > 1 and all(line.startswith(b"{") for _, line in lines[:2]):
        return [_Part(f"{name}:{number}", line, decode_document) for number, line in lines]
    return [_Part(name, content, decode_document)]


def _framed_parts(content: bytes, name: str) -> Iterator[_Part]:
    at, number = 0, 1
    while at < len(content):
        start = at + _LENGTH
        at = start + int.from_bytes(content[at:start], "big")
        yield _Part(f"{name}: message {number}", content[start:at], decode)
        number += 1
