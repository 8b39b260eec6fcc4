"""grpc.health.v1: whether spans are received, for who asks once and for who wants to be told."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore
from typing import Final, NoReturn, Protocol

import grpc  # type: ignore[import-untyped]

from llmlat_processor.edges.receiver import Ready

SERVICE: Final = "grpc.health.v1.Health"
MOST_WATCHERS: Final = 15

_LOOK_S: Final = 1.0

# Each a HealthCheckResponse, serialized: one enum in one field.
SERVING: Final = b"\x08\x01"
NOT_SERVING: Final = b"\x08\x02"
SERVICE_UNKNOWN: Final = b"\x08\x03"


class _Context(Protocol):
    """What the handlers use of gRPC's context of a request."""

    def abort(self, code: object, details: str) -> NoReturn:
        """Answer with an error; raises, so that the handler ends."""

    def is_active(self) -> bool:
        """Whether somebody still waits for an answer."""


def asking_for(service: str) -> bytes:
    """A HealthCheckRequest, serialized: one short text in one field."""
    return bytes((0x0A, len(service))) + service.encode() if service else b""


class HealthService:
    """Answers for the whole server, which is asked for without a name, and for its services.

    Watchers have threads of their own: one that does not read what it is told keeps nobody else
    waiting. There is one thread more than may watch, so that the next one is refused at once.
    """

    def __init__(self, ready: Ready, *services: str) -> None:
        self._ready = ready
        self._known = frozenset(map(asking_for, ("", *services)))
        self._over = Event()
        self._places = Semaphore(MOST_WATCHERS)
        self._threads = ThreadPoolExecutor(MOST_WATCHERS + 1, thread_name_prefix="llmlat-watchers")

    def handler(self) -> grpc.GenericRpcHandler:
        """The service, as a server wants it."""
        methods = {
            "Check": grpc.unary_unary_rpc_method_handler(self._check),
            "Watch": grpc.unary_stream_rpc_method_handler(_Watch(self, self._threads)),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def end(self) -> None:
        """Nothing is served from now on; whoever watches is told so, and let go."""
        self._over.set()

    def close(self) -> None:
        """Wait for the watchers; for when the server has ended."""
        self._threads.shutdown()

    def watch(self, request: bytes, context: _Context) -> Iterator[bytes]:
        """How it is, and again whenever that has changed."""
        if not self._places.acquire(blocking=False):
            context.abort(grpc.StatusCode.UNAVAILABLE, "too many are watching; ask with Check")
        try:
            told = b""
            while context.is_active():
                is_over = self._over.is_set()
                if (now := self._now(request)) != told:
                    told = now
                    yield now
                if is_over:
                    return
                self._over.wait(_LOOK_S)
        finally:
            self._places.release()

    def _check(self, request: bytes, context: _Context) -> bytes:
        health = self._now(request)
        if health == SERVICE_UNKNOWN:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service here")
        return health

    def _now(self, request: bytes) -> bytes:
        if request not in self._known:
            return SERVICE_UNKNOWN
        is_serving = not self._over.is_set() and not self._ready()
        return SERVING if is_serving else NOT_SERVING


class _Watch:
    """A handler that gRPC runs in the threads named here."""

    def __init__(self, service: HealthService, threads: ThreadPoolExecutor) -> None:
        self._service = service
        self.experimental_thread_pool: Final = threads

    def __call__(self, request: bytes, context: _Context) -> Iterator[bytes]:
        return self._service.watch(request, context)
