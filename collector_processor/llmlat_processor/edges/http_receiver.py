"""OTLP over HTTP: receives spans in protobuf or JSON, and answers each sender in its own language.

    event loop ── pieces of bodies, counted ──> threads: inflate, decode, take ──> answer

What is held of bodies that are still coming is bounded over all senders: whoever would be too much
is asked to come again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, NamedTuple

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.code_pb2 import INVALID_ARGUMENT  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from llmlat_processor.edges.bodies import (
    IDENTITY,
    BodyTooLargeError,
    BrokenBodyError,
    inflated,
    is_readable,
)
from llmlat_processor.edges.http_health import OPEN, health
from llmlat_processor.edges.http_protocol import Bounds
from llmlat_processor.edges.http_server import Answer, Asked, GoneError, HttpServer, told
from llmlat_processor.edges.listening import most_connections
from llmlat_processor.edges.receiver import (
    POSTPONED,
    REFUSED,
    SIGNALS,
    TOO_LARGE,
    UNAUTHORIZED,
    UNDECODABLE,
    UNFINISHED,
    Counts,
    Read,
    Ready,
    Take,
    always_ready,
    is_let_in,
)
from llmlat_processor.edges.replies import RETRY_AFTER_S, not_now, success, what_was_refused
from llmlat_processor.settings import Listener
from llmlat_processor.wire import Decoded, UndecodableError, decode, decode_json
from llmlat_processor.wire.span_count import check_nodes

THREADS: Final = 4
MOST_ARRIVING: Final = 4
"""How many of the largest requests may be on their way in at once, or more that are smaller."""

MOST_CONNECTIONS: Final = 4_096
"""One more takes the place of the one that has been silent the longest."""

_OF_ALL_FILES: Final = 1 / 8
_TRACES: Final = "/v1/traces"
_OTHERS: Final = {f"/v1/{signal}": signal for signal in SIGNALS}


class _Language(NamedTuple):
    """One of the two encodings of OTLP over HTTP.

    Attributes:
        content_type: its name.
        decode: reads a request.
        write: makes an answer.
        refuses_whole: whether a request of which nothing can be kept is an error: in JSON it was
            written by hand, and whoever did so looks at the status.
    """

    content_type: str
    decode: Callable[[bytes], Decoded]
    write: Callable[[Message], bytes]
    refuses_whole: bool


def _decode_json(document: bytes) -> Decoded:
    check_nodes(document)
    return decode_json(document)


def _in_protobuf(message: Message) -> bytes:
    return message.SerializeToString()


def _in_json(message: Message) -> bytes:
    return MessageToJson(message, indent=None).encode()


_PROTOBUF: Final = _Language("application/x-protobuf", decode, _in_protobuf, False)
_JSON: Final = _Language("application/json", _decode_json, _in_json, True)
_LANGUAGES: Final = {language.content_type: language for language in (_PROTOBUF, _JSON)}


class _CrowdedError(Exception):
    """Too much is on its way in at once."""


class HttpReceiver:
    """A server that is listening from the moment it is made.

    Raises:
        OSError: the address cannot be had, or a file of its TLS; the message says what to do.
        ValueError: the address is not a host and a port.
    """

    def __init__(
        self,
        listener: Listener,
        take: Take,
        *,
        max_message_bytes: int,
        ready: Ready = always_ready,
        read: Read = decode,
        bounds: Bounds | None = None,
    ) -> None:
        """Bind and serve.

        Args:
            listener: where, with which TLS, and for whom.
            take: called from several threads, and should not block for long.
            max_message_bytes: largest request, before and after decompression.
            ready: told as `/readyz`.
            read: reads requests in protobuf.
            bounds: of connections; None for the usual ones.
        """
        self._take = take
        self._read = read
        self._token = listener.token
        self._most_bytes = max_message_bytes
        self._ready = ready
        self._counts = Counts()
        self._arriving_bytes = 0  # only the event loop touches it
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="llmlat-http-receiver")
        connections = most_connections(MOST_CONNECTIONS, _OF_ALL_FILES)
        usual = Bounds(body_bytes=max_message_bytes, connections=connections)
        self._server = HttpServer(listener, self._handle, bounds or usual)
        self.address: Final = self._server.address

    def stop(self, grace_s: float = 1.0) -> None:
        """Take no more requests, and wait for those that are being answered."""
        self._server.stop(grace_s)
        self._threads.shutdown()

    @property
    def counts(self) -> Mapping[str, int]:
        """`REFUSED` spans, other kinds of `receiver` in requests, requests of other signals."""
        return self._counts.read()

    async def _handle(self, asked: Asked) -> Answer:
        path = asked.path.rstrip("/")
        if path in OPEN and asked.method in ("GET", "HEAD"):
            return health(path, self._ready)
        if not is_let_in(self._token, asked.header("authorization")):
            self._counts.add(UNAUTHORIZED)
            words = "show the token of this receiver as `Authorization: Bearer`"
            return told(HTTPStatus.UNAUTHORIZED, words, ("www-authenticate", "Bearer"))
        language = _LANGUAGES.get(asked.header("content-type").partition(";")[0].strip().lower())
        encoding = asked.header("content-encoding").lower() or IDENTITY
        if language is None or _misses(path, asked.method) or not is_readable(encoding):
            return _misled(asked.method, path, encoding)
        try:
            return await self._receive(asked, path, language, encoding)
        except GoneError:
            self._counts.add(UNFINISHED)
            raise

    async def _receive(self, asked: Asked, path: str, language: _Language, encoding: str) -> Answer:
        if path in _OTHERS:
            while not asked.is_whole:
                await asked.read()
            self._counts.add(_OTHERS[path])
            return _said(language, HTTPStatus.OK, ExportTraceServiceResponse())
        body = bytearray()
        try:
            self._check(int(asked.header("content-length") or 0))
            while not asked.is_whole:
                piece = await asked.read()
                body += piece
                self._arriving_bytes += len(piece)
                self._check(len(body))
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._answer, body, language, encoding)
        except BodyTooLargeError as error:
            self._counts.add(TOO_LARGE)
            return _failed(language, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error))
        except _CrowdedError:
            return self._postponed(language, "too much is being received at once; try again")
        finally:
            self._arriving_bytes -= len(body)

    def _check(self, size: int) -> None:
        """Of a body whether it is too large, and of all bodies whether they are too much."""
        if size > self._most_bytes:
            raise BodyTooLargeError(f"larger than {self._most_bytes} bytes; send smaller batches")
        if self._arriving_bytes > MOST_ARRIVING * self._most_bytes:
            raise _CrowdedError

    def _answer(self, body: bytearray, language: _Language, encoding: str) -> Answer:
        """What becomes of a whole body; in a thread where that may take its time."""
        try:
            read = self._read if language is _PROTOBUF else language.decode
            decoded = read(inflated(bytes(body), encoding, self._most_bytes))
        except (BrokenBodyError, UndecodableError) as error:
            self._counts.add(UNDECODABLE)
            return _failed(language, HTTPStatus.BAD_REQUEST, str(error))
        if decoded.is_for_somebody and (why := self._take(decoded)):
            return self._postponed(language, why)
        self._counts.add(REFUSED, decoded.refused)
        if decoded.damaged and not decoded.spans and language.refuses_whole:
            return _failed(language, HTTPStatus.BAD_REQUEST, what_was_refused(decoded))
        return _said(language, HTTPStatus.OK, success(decoded))

    def _postponed(self, language: _Language, words: str) -> Answer:
        self._counts.add(POSTPONED)
        later = ("retry-after", str(RETRY_AFTER_S))
        return _said(language, HTTPStatus.SERVICE_UNAVAILABLE, not_now(words), later)


def _misses(path: str, method: str) -> bool:
    return method != "POST" or (path != _TRACES and path not in _OTHERS)


def _misled(method: str, path: str, encoding: str) -> Answer:
    """What to do instead, for who speaks to the wrong place or in the wrong language."""
    if path != _TRACES and path not in _OTHERS:
        return told(HTTPStatus.NOT_FOUND, f"nothing is received here; POST spans to {_TRACES}")
    if method != "POST":
        words = f"POST spans to {_TRACES}"
        return told(HTTPStatus.METHOD_NOT_ALLOWED, words, ("allow", "POST"))
    known = " or ".join(_LANGUAGES)
    if not is_readable(encoding):
        words = "this content-encoding cannot be read here; send gzip, or nothing compressed"
        return told(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, words)
    return told(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the content-type {known}")


def _failed(language: _Language, status: HTTPStatus, words: str) -> Answer:
    return _said(language, status, Status(code=INVALID_ARGUMENT, message=words))


def _said(
    language: _Language, status: HTTPStatus, message: Message, *headers: tuple[str, str]
) -> Answer:
    return Answer(status, language.write(message), language.content_type, headers)
