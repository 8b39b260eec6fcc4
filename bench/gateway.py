"""What serving takes: a request that a gateway answers, and each chunk that it passes on.

    per request   with less without, for a response of one chunk
    per chunk     the same for a response of many, less what a request takes, over the chunks

A Starlette application is called as a server would call it, with no network. It hands on what a
model says as it comes: where we are in, it tells of that as an instrumented transport does, so that
the reading of the clock for each event is counted too.

`OTel's span alone` makes, after each request without us, the span that we make of it: no SDK that
makes one takes less. `OTel's ASGI` is OpenTelemetry's own middleware without its span for each
message.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from bench.instrumentations import Instrumentation
from bench.otel_spans import dropping_provider, plain_maker, runtime_of, spans_of
from bench.progress import Progress
from bench.report import Goal, Report, Table
from bench.timing import interleaved
from bench.turns import WITHOUT, Added, Turns
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.core.runtime import runtime
from llmlat_otel.core.serving import serving
from llmlat_otel.instrumentors import asgi
from llmlat_otel.settings import PhasesMode

SUMMARY: Final = "CPU that serving takes per request and per chunk, beside OpenTelemetry's own"

REQUEST_LIMIT_US: Final = 100
CHUNK_LIMIT_US: Final = 5
CHUNKS: Final = 2_000

_PART: Final = b'data: {"choices": [{"index": 0, "delta": {"content": " word"}}]}\n\n'
_OTEL: Final = "OTel's ASGI"
_FLOOR: Final = "OTel's span alone"
_UNSAMPLED: Final = "unsampled"
_MODES: Final = {"spans": PhasesMode.SPANS, "attributes": PhasesMode.ATTRIBUTES}
_ROUNDS: Final = {False: (31, 100, 31), True: (5, 40, 5)}
"""Rounds, requests in each, rounds of one long response; by whether a rough answer will do."""


class Gateway:
    """A gateway that is asked by hand.

    Args:
        chunks: of each response.
    """

    def __init__(self, chunks: int) -> None:
        self._chunks = chunks
        self.app: Any = Starlette(routes=[Route("/v1/chat", self._chat, methods=["POST"])])
        self.asked: Any = self.app
        self._loop = asyncio.new_event_loop()

    async def _chat(self, _: Request) -> StreamingResponse:
        served = serving.get()
        if served is not None:
            served.upstream_begins(runtime().clock.now_ns())
        return StreamingResponse(self._parts(), media_type="text/event-stream")

    async def _parts(self) -> AsyncIterator[bytes]:
        served, now_ns = serving.get(), runtime().clock.now_ns
        for _ in range(self._chunks):
            if served is not None:
                served.upstream_event(now_ns())
            yield _PART
        if served is not None:
            served.upstream_ended(now_ns())

    def call(self, times: int, then: Callable[[], None] | None = None) -> None:
        """Ask, and do something after each answer."""
        self._loop.run_until_complete(self._ask(times, then))

    def call_and_stamp(self, times: int) -> None:
        """The same: there is nothing to stamp."""
        self.call(times)

    async def _ask(self, times: int, then: Callable[[], None] | None) -> None:
        for _ in range(times):
            await self.asked(_scope(), _receive, _send)
            if then is not None:
                then()


async def _receive() -> dict[str, object]:
    return {"type": "http.request", "body": b"{}", "more_body": False}


async def _send(_: object) -> None:
    return None


def _scope() -> dict[str, object]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/chat",
        "raw_path": b"/v1/chat",
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"host", b"127.0.0.1:8000"),
            (b"content-type", b"application/json"),
            (b"content-length", b"2"),
            (b"accept", b"*/*"),
            (b"user-agent", b"bench"),
            (b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    rounds, requests, streams = _ROUNDS[quick]
    each = _measured(Gateway(1), requests, progress, rounds, "requests")
    stream = _measured(Gateway(CHUNKS), 1, progress, streams, "chunks")
    beyond = {
        name: (added - each.beyond[name]) / (CHUNKS - 1) for name, added in stream.beyond.items()
    }
    chunks = Added({name: total / CHUNKS for name, total in stream.total.items()}, beyond)
    tables: list[Table] = [
        each.table("CPU per request of 1 chunk, medians", "serving"),
        chunks.table(f"CPU per chunk of a response of {CHUNKS:,}, medians", "serving"),
    ]
    ours = (*_MODES, _UNSAMPLED)
    goals = [Goal(f"gateway_request_{n}", each.beyond[n], REQUEST_LIMIT_US, "us") for n in ours]
    goals += [Goal(f"gateway_chunk_{n}", chunks.beyond[n], CHUNK_LIMIT_US, "us") for n in ours]
    return Report("gateway", tables, goals)


def _measured(gateway: Gateway, count: int, progress: Progress, rounds: int, what: str) -> Added:
    turns, instrumentor = Turns(gateway), Instrumentor(asgi.TARGETS)
    ours = Instrumentation(instrumentor.instrument, instrumentor.uninstrument)

    def work() -> None:
        gateway.call(count)

    contenders = {WITHOUT: turns.of(None, work), _OTEL: turns.of(_theirs(gateway), work)}
    for mode, phases in _MODES.items():
        contenders[mode] = turns.of(ours, work, runtime_of(phases, phase_min_ns=1_000_000))
    silent = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    contenders[_UNSAMPLED] = turns.of(ours, work, runtime_of(PhasesMode.SPANS, provider=silent))
    make = _span_alone(gateway, ours)
    contenders[_FLOOR] = turns.of(None, lambda: gateway.call(count, make))
    with turns.settled():
        return Added.of(interleaved(contenders, progress.rounds(f"gateway, {what}", rounds)), count)


def _span_alone(gateway: Gateway, ours: Instrumentation) -> Callable[[], None]:
    """OpenTelemetry's making of the span that we make of a request."""
    ours.put_in()
    try:
        return plain_maker(spans_of(PhasesMode.ATTRIBUTES, lambda: gateway.call(1)))
    finally:
        ours.take_out()


def _theirs(gateway: Gateway) -> Instrumentation:
    """OpenTelemetry's own middleware around the application."""
    around: Callable[..., Any] = OpenTelemetryMiddleware
    options = {"tracer_provider": dropping_provider(), "exclude_spans": ["receive", "send"]}
    wrapped = around(gateway.app, **options)

    def ask(app: Any) -> Callable[[], None]:
        return lambda: setattr(gateway, "asked", app)

    return Instrumentation(ask(wrapped), ask(gateway.app))
