"""OTLP over gRPC, one attempt at a time; what a status means for the spans is decided here."""

from __future__ import annotations

import re
from concurrent.futures import TimeoutError as FutureTimeoutError
from threading import Lock
from typing import Final, Protocol

import grpc  # type: ignore[import-untyped]

from llmlat_processor.config.endpoints import is_loopback
from llmlat_processor.edges.addresses import Endpoint, endpoint_of
from llmlat_processor.edges.answers import retry_info_s, taken
from llmlat_processor.edges.client_headers import client_headers, compresses_to
from llmlat_processor.edges.client_tls import SYSTEM, credentials_of
from llmlat_processor.edges.sending import NotNow, Outcome, Refused, Signal, TooLarge
from llmlat_processor.settings import Destination
from llmlat_processor.wire.jaeger_fields import saying

_Code: Final = grpc.StatusCode

_RETRYABLE: Final = frozenset(
    {
        _Code.CANCELLED,
        _Code.DEADLINE_EXCEEDED,
        _Code.ABORTED,
        _Code.OUT_OF_RANGE,
        _Code.UNAVAILABLE,
        _Code.DATA_LOSS,
    }
)
"""What OTLP calls so; RESOURCE_EXHAUSTED is one of them only where it says when to come again."""

_ABOUT_US: Final = {
    _Code.UNAUTHENTICATED: "are the token and the headers of the destination right?",
    _Code.PERMISSION_DENIED: "may this token send spans there?",
    _Code.UNIMPLEMENTED: "does OTLP over gRPC arrive there? its port is 4317 unless changed",
}
_OVER_HTTP: Final = (
    "it speaks HTTP: set the protocol to http, or take its port of gRPC, mostly 4317"
)
_OVER_TLS: Final = "does it speak TLS, and is it the one whose authorities are set?"
_HUNG_UP: Final = "it hangs up: does it ask for TLS, or for a certificate of ours?"

_NO_GRPC: Final = re.compile("http1|HTTP/1|parsing HTTP/2|http2 header with status", re.IGNORECASE)
_TLS: Final = re.compile("ssl|tls|certificate|handshake", re.IGNORECASE)
_CLOSED: Final = re.compile("failed to connect.*(socket closed|reset)", re.IGNORECASE)
_SIZE: Final = re.compile("(message|size|length).*(too large|larger|exceed)", re.IGNORECASE)
"""How a receiver in Rust says that a request is too large, with OUT_OF_RANGE."""

_CHANNEL: Final = [
    ("grpc.max_send_message_length", -1),
    # Its own pauses grow to two minutes, in which a destination that is back is not noticed. The
    # least of them is left alone: it is also how long a destination may take to greet us.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
    ("grpc.primary_user_agent", "llmlat-processor"),
]


class _Call(Protocol):
    """What is used of gRPC's call in flight."""

    def result(self) -> bytes:
        """Wait for the answer."""

    def cancel(self) -> bool:
        """Wait no longer."""


class GrpcSender:
    """Sends to one destination over one connection, that is made anew where it seems dead."""

    def __init__(self, destination: Destination, signal: Signal) -> None:
        """Nothing is connected yet.

        Raises:
            ValueError: the destination cannot be one; the message says what to do.
        """
        self._endpoint = endpoint_of(destination)
        self._method = signal.method
        self._headers = [*client_headers(destination).items()]
        compresses = compresses_to(destination, self._endpoint)
        kinds = grpc.Compression
        self._compression = kinds.Gzip if compresses else kinds.NoCompression
        self._credentials = None
        if self._endpoint.is_secure:
            self._credentials = credentials_of(destination.tls or SYSTEM)
        self._lock = Lock()
        self._channel = _channel_to(self._endpoint, self._credentials)
        self._call: _Call | None = None
        self._is_cancelled = False

    @property
    def destination(self) -> str:
        """`host:port`."""
        return self._endpoint.address

    def send(self, content: bytes, timeout_s: float) -> Outcome:
        """Make one attempt."""
        call = self._start(content, timeout_s)
        if call is None:
            return NotNow("cancelled")
        try:
            return taken(call.result())
        except grpc.RpcError as error:
            if error.code() is _Code.DEADLINE_EXCEEDED:
                self._connect_anew()
            return outcome_of(error)
        except grpc.FutureCancelledError:
            return NotNow("cancelled")
        finally:
            self._call = None

    def is_reachable(self, timeout_s: float) -> bool:
        """Whether somebody answers there; waits so long for it."""
        with self._lock:
            ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=timeout_s)
        except (FutureTimeoutError, grpc.FutureTimeoutError):
            return False
        finally:
            ready.cancel()
        return True

    def cancel(self) -> None:
        """End the attempt in flight, if there is one, and make no other."""
        with self._lock:
            self._is_cancelled = True
            call = self._call
        if call is not None:
            call.cancel()

    def close(self) -> None:
        """Leave no connection behind."""
        self._channel.close()

    def _start(self, content: bytes, timeout_s: float) -> _Call | None:
        with self._lock:
            if self._is_cancelled:
                return None
            call: _Call = self._channel.unary_unary(self._method).future(
                content,
                timeout=timeout_s,
                metadata=self._headers,
                compression=self._compression,
            )
            self._call = call
            return call

    def _connect_anew(self) -> None:
        """No answer can mean that nobody is there any more: TCP needs minutes to find that out."""
        with self._lock:
            old = self._channel
            self._channel = _channel_to(self._endpoint, self._credentials)
        old.close()


def _channel_to(endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    """Nothing is connected yet. Proxies of the environment are for others than this machine."""
    direct = [("grpc.enable_http_proxy", 0)] if is_loopback(endpoint.host) else []
    options = [*_CHANNEL, *direct]
    if credentials is None:
        return grpc.insecure_channel(endpoint.address, options=options)
    return grpc.secure_channel(endpoint.address, credentials, options=options)


def outcome_of(error: grpc.RpcError) -> Outcome:
    """What a status that is no success means."""
    code, details = error.code(), error.details() or ""
    words = f"{code.name}, {saying(details)}"
    after_s = retry_info_s(error.trailing_metadata() or ())
    if code is _Code.RESOURCE_EXHAUSTED:
        return TooLarge(words) if after_s is None else NotNow(words, after_s)
    if code is _Code.OUT_OF_RANGE and _SIZE.search(details):
        return TooLarge(words)
    if code in _RETRYABLE:
        return NotNow(words + _hint(details), after_s or 0)
    if code in _ABOUT_US:
        return Refused(f"{words}; {_ABOUT_US[code]}", is_about_us=True)
    return Refused(words + _hint(details))


def _hint(details: str) -> str:
    """What may be wrong with how we knock, where the words of gRPC show it."""
    if _NO_GRPC.search(details):
        return f"; {_OVER_HTTP}"
    if _TLS.search(details):
        return f"; {_OVER_TLS}"
    return f"; {_HUNG_UP}" if _CLOSED.search(details) else ""
