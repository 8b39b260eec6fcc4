"""Fetches a trace from Jaeger's query API, and says what is wrong where none comes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

from llmlat_processor.config.endpoints import is_loopback
from llmlat_processor.jaeger_address import PORT, Address
from llmlat_processor.wire.jaeger_fields import saying

TIMEOUT_S: Final = 30.0
MOST_BYTES: Final = 512 * 2**20
"""Largest answer that is read, after decompression."""

_PIECE: Final = 2**20
_GZIP: Final = 31  # zlib's window of 15 bits, behind a header of gzip
_NOT_FOUND: Final = 404
_DENIED: Final = (401, 403)
_INSTEAD: Final = "download the trace there (Trace JSON) and show the file"


class _Refusal(NamedTuple):
    """Why one of the two APIs gave no trace; the one that tells most is told.

    Attributes:
        weight: how much it tells.
        words: for a person.
    """

    weight: int
    words: str


def fetch(
    address: Address, *, timeout_s: float = TIMEOUT_S, most_bytes: int = MOST_BYTES
) -> Iterator[bytes]:
    """Ask for a trace; whoever can use the first answer need not ask for the second.

    Args:
        address: where the trace is.
        timeout_s: how long nothing may come, in seconds.
        most_bytes: largest answer, decompressed.

    Yields:
        What Jaeger answers: OTLP from its API v3, then its own JSON from the older API.

    Raises:
        OSError: nobody answers, or neither API has the trace; the message says what to do.
    """
    opener = _opener(address.base)
    refusals = []
    for url in address.urls:
        answer = _ask(opener, url, timeout_s, most_bytes)
        if isinstance(answer, bytes):
            yield answer
        else:
            refusals.append(answer)
    if len(refusals) == len(address.urls):
        raise OSError(max(refusals).words)


def _opener(base: str) -> OpenerDirector:
    """Proxies of the environment are for others than this machine."""
    host = urlsplit(base).hostname or ""
    return build_opener(ProxyHandler({})) if is_loopback(host) else build_opener()


def _ask(opener: OpenerDirector, url: str, timeout_s: float, most_bytes: int) -> bytes | _Refusal:
    """The body of an answer that can be a trace, or why it is none; OSError where none comes."""
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
    where = urlsplit(url).netloc
    try:
        with opener.open(Request(url, headers=headers), timeout=timeout_s) as response:
            body = _body(response, where, most_bytes)
    except HTTPError as error:
        with error:
            return _refused(error, where)
    except (OSError, HTTPException) as error:
        raise OSError(_unreachable(error, where)) from error
    is_page = isinstance(body, bytes) and body.lstrip()[:1] not in (b"{", b"[")
    return _no_api(where) if is_page else body


def _body(response: HTTPResponse, where: str, most_bytes: int) -> bytes | _Refusal:
    """The body, decompressed, unless it is larger than anybody can look at."""
    inflate = None
    if response.headers.get("Content-Encoding", "").lower() == "gzip":
        inflate = zlib.decompressobj(_GZIP)
    pieces, size, came = [], 0, 0
    while not (inflate and inflate.eof) and (piece := response.read(_PIECE)):
        try:
            grown = inflate.decompress(piece, most_bytes + 1 - size) if inflate else piece
        except zlib.error as error:
            return _Refusal(1, f"{where} answers with broken gzip: {error}")
        pieces.append(grown)
        size += len(grown)
        came += len(piece)  # gzip without end can hold nothing
        if max(size, came) > most_bytes:
            return _Refusal(4, f"{where} answers with more than {most_bytes >> 20} MiB")
    if response.length if inflate is None else not inflate.eof:  # bytes that were promised
        return _Refusal(1, f"the answer of {where} breaks off")
    return b"".join(pieces)


def _refused(error: HTTPError, where: str) -> _Refusal:
    if error.code in _DENIED:
        return _Refusal(2, f"{where} wants a login (HTTP {error.code}); {_INSTEAD}")
    said = _said(error)
    if error.code == _NOT_FOUND and said is not None:
        hint = "one can be read some seconds after its last span"
        return _Refusal(3, f"{where} has no such trace ({said}); {hint}")
    if error.code == _NOT_FOUND:
        return _no_api(where)
    return _Refusal(1, f"{where} answers with HTTP {error.code} {said or saying(error.reason)}")


def _no_api(where: str) -> _Refusal:
    hint = f"is it Jaeger's UI, on port {PORT} unless changed, behind a base path or a login?"
    return _Refusal(0, f"{where} answers, but not as Jaeger's query API does; {hint}")


def _said(error: HTTPError) -> str | None:
    """What Jaeger says of its refusal, in either API's form; None where it is not Jaeger."""
    try:
        answer = json.loads(error.read(_PIECE))
        if "error" in answer:
            return saying(answer["error"]["message"])
        return saying(answer["errors"][0]["msg"])
    except (ValueError, LookupError, TypeError, RecursionError, HTTPException, OSError):
        return None


def _unreachable(error: Exception, where: str) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return f"{where} does not answer in time"
    why = getattr(reason, "strerror", None) or str(reason)
    if isinstance(reason, HTTPException):  # its words are what came instead
        why = "no answer in HTTP"
    hint = f"is it the port of Jaeger's UI, {PORT} unless changed?"
    return f"nothing can be fetched from {where} ({why}); {hint}"
