"""OTLP over gRPC: receives spans, and answers each request as the protocol wants it answered.

A sync server with handlers on raw bytes: half the CPU of an asyncio one, and no message is parsed
that is not looked at.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final, NoReturn, Protocol

import grpc  # type: ignore[import-untyped]
from google.protobuf.duration_pb2 import Duration
from google.rpc.code_pb2 import UNAVAILABLE  # type: ignore[import-untyped]
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from llmlat_processor.edges.addresses import host_and_port
from llmlat_processor.wire import Decoded, UndecodableError, WireSpan, decode

RETRY_AFTER_S: Final = 1
THREADS: Final = 4

REFUSED: Final = "damaged"
UNDECODABLE: Final = "undecodable"

_SERVICE: Final = "opentelemetry.proto.collector.{0}.v1.{1}Service"
_TRACES: Final = _SERVICE.format("trace", "Trace")
_OTHERS: Final = {
    "logs": _SERVICE.format("logs", "Logs"),
    "metrics": _SERVICE.format("metrics", "Metrics"),
}
"""Signals that nobody asked for. They are thanked for and dropped: an app sends all its signals
to one endpoint, and must not log errors because somebody watches its traces."""

_EMPTY: Final = b""
"""An empty answer of any export service: all was accepted."""

Take = Callable[[Sequence[WireSpan]], bool]
"""Takes spans over, or says that there is no room for them now."""

_Handler = Callable[[bytes, "_Context"], bytes]


class _Context(Protocol):
    """What the handlers use of gRPC's context of a request."""

    def abort(self, code: object, details: str) -> NoReturn:
        """Answer with an error; raises, so that the handler ends."""

    def set_trailing_metadata(self, metadata: Sequence[tuple[str, bytes]]) -> None:
        """What goes with the answer's status."""


class Receiver:
    """A server that is listening from the moment it is made.

    Raises:
        OSError: the address cannot be had; the message says what to do.
        ValueError: `listen` is not a host and a port.
    """

    def __init__(self, listen: str, take: Take, *, max_message_bytes: int) -> None:
        """Bind and serve.

        Args:
            listen: `host:port`; no host is loopback, port 0 any free one.
            take: called from several threads, and should not block for long.
            max_message_bytes: largest request, after decompression.
        """
        host, port = host_and_port(listen)
        _check_free(host, port)
        self._take = take
        self._counts: Counter[str] = Counter()
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="llmlat-receiver")
        self._server = grpc.server(
            self._threads,
            handlers=self._handlers(),
            options=[
                ("grpc.max_receive_message_length", max_message_bytes),
                ("grpc.so_reuseport", 0),  # two of us on one port would share its traces at random
            ],
        )
        self.address: Final = f"{host}:{self._server.add_insecure_port(f'{host}:{port}')}"
        self._server.start()

    def stop(self, grace_s: float = 1.0) -> None:
        """Take no more requests, and wait for those that are being answered."""
        self._server.stop(grace_s).wait()
        self._threads.shutdown()

    @property
    def counts(self) -> Mapping[str, int]:
        """`REFUSED` spans, `UNDECODABLE` requests, and the requests of each other signal."""
        with self._lock:
            return dict(self._counts)

    def _handlers(self) -> list[grpc.GenericRpcHandler]:
        services: dict[str, _Handler] = {_TRACES: self._export}
        services.update((service, self._dropping(name)) for name, service in _OTHERS.items())
        return [
            grpc.method_handlers_generic_handler(
                service, {"Export": grpc.unary_unary_rpc_method_handler(handler)}
            )
            for service, handler in services.items()
        ]

    def _export(self, request: bytes, context: _Context) -> bytes:
        try:
            decoded = decode(request)
        except UndecodableError as error:
            self._count(UNDECODABLE)
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        if decoded.spans and not self._take(decoded.spans):
            _ask_to_retry(context)
        self._count(REFUSED, decoded.refused)
        return _answer(decoded)

    def _dropping(self, signal: str) -> _Handler:
        def drop(_request: bytes, _context: _Context) -> bytes:
            self._count(signal)
            return _EMPTY

        return drop

    def _count(self, what: str, by: int = 1) -> None:
        with self._lock:
            self._counts[what] += by


def _check_free(host: str, port: int) -> None:
    """Ask the system itself, whose answer is clearer than that of the gRPC library."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    try:
        socket.getaddrinfo(bare, port, family)
        socket.create_server((bare, port), family=family).close()
    except socket.gaierror as error:
        why = f"cannot listen on {host}:{port}: {error.strerror}; {host} is no name of this machine"
        raise OSError(error.errno, why) from error
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot listen on {host}:{port}: {error.strerror}; stop what listens there (a "
            f"collector, another llmlat?) or choose another port, such as {host}:0 for a free one",
        ) from error


def _ask_to_retry(context: _Context) -> NoReturn:
    """Overload: without RetryInfo some exporters drop the data for good."""
    retry = RetryInfo(retry_delay=Duration(seconds=RETRY_AFTER_S))
    message = "too many spans are waiting; try again"
    status = Status(code=UNAVAILABLE, message=message)
    status.details.add().Pack(retry)
    context.set_trailing_metadata(
        (
            ("grpc-status-details-bin", status.SerializeToString()),
            ("google.rpc.retryinfo-bin", retry.SerializeToString()),  # where Python's looks
        )
    )
    context.abort(grpc.StatusCode.UNAVAILABLE, message)


def _answer(decoded: Decoded) -> bytes:
    """Success, or partial success that says what was wrong with the first damaged part."""
    if not decoded.damaged:
        return _EMPTY
    first = decoded.damaged[0]
    refused, kept = decoded.refused, len(decoded.spans)
    hint = "" if kept else "; if these are logs or metrics, send them to their own service"
    partial = ExportTracePartialSuccess(
        rejected_spans=refused,
        error_message=f"{refused} of {refused + kept} spans refused; first {first}{hint}",
    )
    return ExportTraceServiceResponse(partial_success=partial).SerializeToString()
