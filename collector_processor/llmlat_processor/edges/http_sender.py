"""OTLP over HTTP, one attempt at a time; what a status means for the spans is decided here."""

from __future__ import annotations

import gzip
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from threading import Lock
from typing import Final
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from llmlat_processor.config.endpoints import is_loopback
from llmlat_processor.edges.addresses import Endpoint, endpoint_of
from llmlat_processor.edges.answers import retry_after_s, said, taken
from llmlat_processor.edges.client_headers import client_headers, compresses_to
from llmlat_processor.edges.client_tls import SYSTEM, context_of
from llmlat_processor.edges.sending import NotNow, Outcome, Refused, Signal, TooLarge
from llmlat_processor.settings import Destination
from llmlat_processor.wire.jaeger_fields import saying

MOST_ANSWER_BYTES: Final = 1 << 20
"""More of an answer is not read; spans that were taken are taken, whatever else is said."""

GRPC_PORT: Final = 4317
"""Who hangs up there may be a server of gRPC that does not know what to make of us."""

_PIECE: Final = 1 << 16
_SHORTEST_S: Final = 0.001
_LIGHTLY: Final = 1
"""The level of compression: three times as fast as the usual one, and nearly as small."""

_RETRYABLE: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
_ABOUT_US: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "are the token and the headers of the destination right?",
    HTTPStatus.FORBIDDEN: "may this token send spans there?",
    HTTPStatus.NOT_FOUND: "is the path right, and the port that of OTLP over HTTP, mostly 4318?",
    HTTPStatus.METHOD_NOT_ALLOWED: "does OTLP over HTTP arrive there, on this path?",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "does it take OTLP as Protobuf, and gzip, on this path?",
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "does the proxy's address hold its login?",
}
_OVER_GRPC: Final = (
    "is that its port of gRPC? set the protocol to grpc, or take its port of HTTP, mostly 4318"
)
_NO_TLS: Final = re.compile("WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|packet length too long")
_OURSELVES: Final = re.compile(r"^\w+\(host=.*?\): ")
"""How urllib3 names our end of a connection; the words that matter stand behind it."""


class HttpSender:
    """Sends to one destination over one connection, that is kept while it works."""

    def __init__(self, destination: Destination, signal: Signal) -> None:
        """Nothing is connected yet.

        Raises:
            ValueError: the destination cannot be one; the message says what to do.
        """
        endpoint = endpoint_of(destination)
        self._url = endpoint.url
        if not endpoint.path.endswith(signal.path):
            self._url += signal.path
        self._port = endpoint.port
        self._compresses = compresses_to(destination, endpoint)
        self._headers = {
            "user-agent": "llmlat-processor",
            **client_headers(destination),
            "content-type": "application/x-protobuf",
            **({"content-encoding": "gzip"} if self._compresses else {}),
        }
        context = context_of(destination.tls or SYSTEM) if endpoint.is_secure else None
        self._pools = _pools(endpoint, context, self._connected)
        self._lock = Lock()
        self._connections: list[HTTPConnection] = []
        self._is_cancelled = False

    @property
    def destination(self) -> str:
        """The URL that requests go to."""
        return self._url

    def send(self, content: bytes, timeout_s: float) -> Outcome:
        """Make one attempt."""
        ends_s = time.monotonic() + timeout_s
        body = gzip.compress(content, _LIGHTLY, mtime=0) if self._compresses else content
        if self._is_cancelled:
            return NotNow("cancelled")
        try:
            response = self._ask("POST", body, ends_s - time.monotonic())
            try:
                return _outcome(response, _answer(response, ends_s))
            finally:
                response.release_conn()
        except (HTTPError, OSError) as error:
            return NotNow("cancelled" if self._is_cancelled else _unreachable(error, self._port))

    def is_reachable(self, timeout_s: float) -> bool:
        """Whether anything is answered there, to a question that changes nothing; asks once."""
        try:
            self._ask("GET", None, timeout_s).drain_conn()
        except (HTTPError, OSError):
            return False
        return True

    def cancel(self) -> None:
        """End the attempt in flight, if there is one, and make no other."""
        with self._lock:
            self._is_cancelled = True
            for connection in self._connections:
                _hang_up(connection)

    def close(self) -> None:
        """Leave no connection behind."""
        self._pools.clear()

    def _ask(self, method: str, body: bytes | None, timeout_s: float) -> BaseHTTPResponse:
        return self._pools.urlopen(
            method,
            self._url,
            body=body,
            headers=self._headers,
            redirect=False,
            retries=False,
            preload_content=False,
            timeout=urllib3.Timeout(total=max(_SHORTEST_S, timeout_s)),
        )

    def _connected(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._connections = [*filter(_is_open, self._connections), connection]
            if self._is_cancelled:
                _hang_up(connection)


def _pools(
    endpoint: Endpoint, context: ssl.SSLContext | None, connected: Callable[[HTTPConnection], None]
) -> urllib3.PoolManager:
    """Connections, none yet. Proxies of the environment are for others than this machine."""
    scheme = "https" if endpoint.is_secure else "http"
    proxy = None if is_loopback(endpoint.host) else getproxies().get(scheme)
    if proxy is None or proxy_bypass(endpoint.address):
        pools = urllib3.PoolManager(ssl_context=context)
    else:
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        login = urllib3.util.parse_url(proxy).auth
        headers = urllib3.util.make_headers(proxy_basic_auth=login) if login else None
        pools = urllib3.ProxyManager(proxy, proxy_headers=headers, ssl_context=context)
    pools.pool_classes_by_scheme = _telling(connected)
    return pools


def _telling(connected: Callable[[HTTPConnection], None]) -> dict[str, type]:
    """Pools that tell of each new connection: nothing else can end a request in flight."""

    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            connected(self)

    class Secure(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            connected(self)

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _is_open(connection: HTTPConnection) -> bool:
    return connection.sock is not None


def _hang_up(connection: HTTPConnection) -> None:
    """Whoever waits for this connection finds its end; TLS is not asked, since it is in use."""
    wire = connection.sock
    if isinstance(wire, socket.socket):
        with suppress(OSError):
            socket.socket.shutdown(wire, socket.SHUT_RDWR)


def _answer(response: BaseHTTPResponse, ends_s: float) -> bytes:
    """The body, as far as it comes in time and can be read."""
    pieces: list[bytes] = []
    room = MOST_ANSWER_BYTES
    with suppress(HTTPError, OSError):
        while room > 0 and time.monotonic() < ends_s:
            piece = response.read1(_PIECE)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            room -= len(piece)
    response.close()  # nobody knows where on this connection the next answer would begin
    return b"".join(pieces)


def _outcome(response: BaseHTTPResponse, answer: bytes) -> Outcome:
    status, headers = response.status, response.headers
    kind = headers.get("content-type", "").lower()
    if 200 <= status < 300:
        return taken(answer, kind)
    words = f"HTTP {status} {said(answer, kind) or saying(response.reason or '')}".rstrip()
    if status in _RETRYABLE:
        return NotNow(words, retry_after_s(headers.get("retry-after", ""), time.time()))
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return TooLarge(words)
    if 300 <= status < 400:
        where = saying(headers.get("location", "nowhere"))
        return Refused(f"{words}: it sends us to {where}; is that the endpoint?", is_about_us=True)
    if status in _ABOUT_US:
        return Refused(f"{words}; {_ABOUT_US[status]}", is_about_us=True)
    return Refused(words)


def _unreachable(error: Exception, port: int) -> str:
    """What the network says, and what may be wrong with how we knock."""
    cause = error.args[-1] if error.args and isinstance(error.args[-1], Exception) else error
    words = str(cause)
    if isinstance(cause, HTTPException) and not isinstance(cause, ConnectionError):
        return f"no answer in HTTP; {_OVER_GRPC}"
    if _NO_TLS.search(words):
        return "no answer in TLS; is it http:// in place of https://?"
    if "CERTIFICATE_VERIFY_FAILED" in words:
        return f"{saying(words)}; is it the one whose authorities are set?"
    hung_up_on_us = isinstance(cause, ConnectionError) and port == GRPC_PORT
    return saying(_OURSELVES.sub("", words)) + (f"; {_OVER_GRPC}" if hung_up_on_us else "")
