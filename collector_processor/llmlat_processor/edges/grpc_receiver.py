"""OTLP over gRPC: receives spans, and answers each request as the protocol wants it answered.

A sync server with handlers on raw bytes: half the CPU of an asyncio one, and no message is parsed
that is not looked at. Sizes, compression and dead connections are watched over by the gRPC
library; it refuses what is too large as RESOURCE_EXHAUSTED while it inflates. What it does not
watch is a request that never comes to its end, and holds a thread: `_Waiting` calls those off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock, Thread
from typing import Final, NoReturn, Protocol

import grpc  # type: ignore[import-untyped]

from llmlat_processor.edges.addresses import host_and_port
from llmlat_processor.edges.grpc_health import HealthService
from llmlat_processor.edges.listening import listening_socket, most_connections
from llmlat_processor.edges.receiver import (
    POSTPONED,
    REFUSED,
    SIGNALS,
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
from llmlat_processor.edges.replies import not_now, retry_info, success
from llmlat_processor.edges.server_tls import tls_credentials
from llmlat_processor.settings import Listener
from llmlat_processor.wire import UndecodableError, decode

THREADS: Final = 16
"""How many requests may be on their way in at once; each may be as large as any is."""

MOST_CONNECTIONS: Final = 16_384
"""Some 18 KB each. One more is refused: the library can close none that is idle in its favour."""

_OF_ALL_FILES: Final = 5 / 8

ARRIVAL_S: Final = 30.0
CROWDED_S: Final = 1.0
"""How long a request may take to arrive, and how long it may where it keeps others waiting."""

UNIX: Final = "unix:"
"""How the address of a socket in a folder begins, for processes of this machine."""

_SERVICE: Final = "opentelemetry.proto.collector.{0}.v1.{1}Service"
_TRACES: Final = _SERVICE.format("trace", "Trace")

_EMPTY: Final = b""
"""An empty answer of any export service: all was accepted."""

_TOKEN_WANTED: Final = "show the token of this receiver as `authorization: Bearer`"

_SECOND_MS: Final = 1000
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # two of us on one port would share its traces at random
    ("grpc.max_concurrent_streams", 64),
    ("grpc.server_handshake_timeout_ms", 10 * _SECOND_MS),
    ("grpc.max_connection_idle_ms", 120 * _SECOND_MS),
    ("grpc.keepalive_time_ms", 60 * _SECOND_MS),  # who does not answer this is gone
    ("grpc.keepalive_timeout_ms", 20 * _SECOND_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    # Collectors are often told to ping each 10 or 30 s; the library would hang up on them.
    ("grpc.http2.min_ping_interval_without_data_ms", 5 * _SECOND_MS),
)

_Handler = Callable[[Iterator[bytes], "_Context"], bytes]


class _Context(Protocol):
    """What the handlers use of gRPC's context of a request."""

    def abort(self, code: object, details: str) -> NoReturn:
        """Answer with an error; raises, so that the handler ends."""

    def cancel(self) -> None:
        """Call the request off."""

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]]:
        """What came with the request."""

    def set_trailing_metadata(self, metadata: Sequence[tuple[str, bytes]]) -> None:
        """What goes with the answer's status."""


class GrpcReceiver:
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
        arrival_s: float = ARRIVAL_S,
    ) -> None:
        """Bind and serve.

        Args:
            listener: where, with which TLS, and for whom.
            take: called from several threads, and should not block for long.
            max_message_bytes: largest request, after decompression.
            ready: told as grpc.health.v1.
            read: reads requests.
            arrival_s: how long a request may take to arrive, in seconds.
        """
        at = _checked(listener.address)
        credentials = tls_credentials(listener.tls) if listener.tls else None
        connections = most_connections(MOST_CONNECTIONS, _OF_ALL_FILES)
        self._take = take
        self._read = read
        self._token = listener.token
        self._counts = Counts()
        self._health = HealthService(ready, _TRACES)
        self._waiting = _Waiting(arrival_s)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="llmlat-receiver")
        self._server = grpc.server(
            self._threads,
            handlers=[*self._handlers(), self._health.handler()],
            options=[
                *_OPTIONS,
                ("grpc.max_receive_message_length", max_message_bytes),
                ("grpc.max_allowed_incoming_connections", connections),
            ],
        )
        add, tls = self._server.add_insecure_port, self._server.add_secure_port
        port = tls(at, credentials) if credentials else add(at)
        self.address: Final = at if at.startswith(UNIX) else f"{at.rpartition(':')[0]}:{port}"
        self._server.start()

    def stop(self, grace_s: float = 1.0) -> None:
        """Take no more requests, and wait for those that are being answered."""
        self._health.end()
        self._server.stop(grace_s).wait()
        self._threads.shutdown()
        self._health.close()
        self._waiting.close()

    @property
    def counts(self) -> Mapping[str, int]:
        """`REFUSED` spans, other kinds of `receiver` in requests, requests of other signals."""
        return self._counts.read()

    def _handlers(self) -> list[grpc.GenericRpcHandler]:
        services: dict[str, _Handler] = {_TRACES: self._export}
        services.update(
            (_SERVICE.format(signal, signal.title()), self._dropping(signal)) for signal in SIGNALS
        )
        # A stream of requests can be called off before the first has arrived.
        return [
            grpc.method_handlers_generic_handler(
                service, {"Export": grpc.stream_unary_rpc_method_handler(handler)}
            )
            for service, handler in services.items()
        ]

    def _export(self, requests: Iterator[bytes], context: _Context) -> bytes:
        try:
            decoded = self._read(self._arrived(requests, context))
        except UndecodableError as error:
            self._counts.add(UNDECODABLE)
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        if decoded.is_for_somebody and (why := self._take(decoded)):
            self._counts.add(POSTPONED)
            _ask_to_retry(context, why)
        self._counts.add(REFUSED, decoded.refused)
        return success(decoded).SerializeToString()

    def _dropping(self, signal: str) -> _Handler:
        def drop(requests: Iterator[bytes], context: _Context) -> bytes:
            self._arrived(requests, context)
            self._counts.add(signal)
            return _EMPTY

        return drop

    def _arrived(self, requests: Iterator[bytes], context: _Context) -> bytes:
        """The request, of who may send one."""
        if self._token:
            shown = dict(context.invocation_metadata()).get("authorization", "")
            if not isinstance(shown, str) or not is_let_in(self._token, shown):
                self._counts.add(UNAUTHORIZED)
                context.abort(grpc.StatusCode.UNAUTHENTICATED, _TOKEN_WANTED)
        self._waiting.add(context)
        try:
            return next(requests)
        except (grpc.RpcError, StopIteration):  # too large for the library, too slow, or given up
            self._counts.add(UNFINISHED)
            context.abort(grpc.StatusCode.CANCELLED, "no request has arrived")
        finally:
            self._waiting.remove(context)


def _checked(address: str) -> str:
    """The address in the words of the library, if it can be had."""
    if address.startswith(UNIX):
        return address
    host, port = host_and_port(address)
    listening_socket(host, port).close()  # its words are clearer than those of the library
    return f"{host}:{port}"


class _Waiting:
    """Requests whose threads wait for their bytes; calls off what takes too long.

    Where no thread is left, whoever waits the longest has to go soon, so that senders who stall
    do not keep out those who do not.
    """

    def __init__(self, arrival_s: float) -> None:
        self._arrival_s = arrival_s
        self._since: dict[_Context, float] = {}
        self._lock = Lock()
        self._over = Event()
        self._thread = Thread(target=self._run, name="llmlat-arrivals", daemon=True)
        self._thread.start()

    def add(self, context: _Context) -> None:
        """From now on it is waited for."""
        with self._lock:
            self._since[context] = time.monotonic()

    def remove(self, context: _Context) -> None:
        """It has arrived, or never will."""
        with self._lock:
            self._since.pop(context, None)

    def close(self) -> None:
        """Watch no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        look_s = min(self._arrival_s, CROWDED_S) / 2
        while not self._over.wait(look_s):
            for context in self._late():
                context.cancel()

    def _late(self) -> list[_Context]:
        with self._lock:
            is_crowded = len(self._since) >= THREADS
            allowed_s = min(self._arrival_s, CROWDED_S) if is_crowded else self._arrival_s
            before = time.monotonic() - allowed_s
            return [context for context, since in self._since.items() if since < before]


def _ask_to_retry(context: _Context, words: str) -> NoReturn:
    status = not_now(words)
    context.set_trailing_metadata(
        (
            ("grpc-status-details-bin", status.SerializeToString()),
            ("google.rpc.retryinfo-bin", retry_info().SerializeToString()),  # where Python's looks
        )
    )
    context.abort(grpc.StatusCode.UNAVAILABLE, words)
