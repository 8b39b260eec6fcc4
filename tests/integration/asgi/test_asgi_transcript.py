"""On a real uvicorn: bytes on the wire, and what applications see, are the same as without us."""

import re
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

import llmlat_otel
from llmlat_otel.asgi import GatewayMiddleware
from llmlat_otel.core.clock import Clock
from llmlat_otel.core.guard import faults
from llmlat_otel.settings import PhasesMode, Settings
from llmlat_otel.testing import recorded
from llmlat_semconv import attributes as names
from tests.integration.asgi.applications import APPLICATIONS, CASES, Case, fastapi
from tests.integration.asgi.wire import Log, Stage, asked, request, served

REQUESTS = len(CASES) + 2
"""One case is three requests, pipelined."""

WAYS = ("auto", "by hand", "as a layer", "unsampled", "attributes")


def is_gone(said):
    """A caller that leaves is noticed after so many parts."""
    return re.sub(r"(\['sent', \{'type': 'http.response.body'.*?\], )+", "... ", said)


def transcript(case, make, way=None):
    """What went over the wire, what the application saw, and what the server logged."""
    stage = Stage()
    with served(stage) as (port, errors):
        return _transcript(stage, port, errors, case, make, way)


def transcripts(make, way=None):
    """The same of every case, by one server."""
    stage = Stage()
    with served(stage) as (port, errors):
        return {
            name: _transcript(stage, port, errors, case, make, way) for name, case in CASES.items()
        }


def _transcript(stage, port, errors, case, make, way):
    errors.clear()
    logs: list[Log] = []

    class Logs(Log):
        def __init__(self, app: Any) -> None:
            super().__init__(app)
            logs.append(self)

    layers = [*case.layers, Middleware(Logs)]
    if way == "as a layer":
        layers.insert(0, Middleware(GatewayMiddleware))
    app = make(*layers)
    if way in {"by hand", "unsampled", "attributes"}:
        app = GatewayMiddleware(app)
    came = stage.asked(app, lambda: case.ask(port))
    seen = logs[0].seen()
    return came, seen if case.is_steady else is_gone(seen), list(errors)


@pytest.fixture(scope="module")
def plain():
    """The same without us, which are not in yet."""
    return {make: transcripts(APPLICATIONS[make]) for make in APPLICATIONS}


@pytest.fixture
def record(request):
    """What is recorded; by the way that the test says, if it says any."""
    way = getattr(request, "param", None)
    mode = PhasesMode.ATTRIBUTES if way == "attributes" else PhasesMode.SPANS
    before = dict(faults())
    if way in {"auto", None}:
        llmlat_otel.instrument()
    sampler = ALWAYS_OFF if way == "unsampled" else ALWAYS_ON
    with recorded(clock=Clock(), settings=Settings(phases=mode), sampler=sampler) as what:
        yield what
    llmlat_otel.uninstrument()
    assert faults() == before


def servers(record):
    return [span for span in record.spans if span.kind is trace.SpanKind.SERVER]


@pytest.mark.parametrize(("record", "way"), [(way, way) for way in WAYS], indirect=["record"])
@pytest.mark.parametrize("make", APPLICATIONS)
def test_the_transcript_is_the_same(make, way, plain, record):
    same = transcripts(APPLICATIONS[make], way)
    assert {case for case in CASES if same[case] != plain[make][case]} == set()
    is_silent = way == "unsampled" or (way == "auto" and make == "plain")
    assert len(servers(record)) == (0 if is_silent else REQUESTS)


def test_the_transcript_shows_harm(plain):
    """A layer that joins two parts is seen, though the body is the same."""

    class Joining:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            held: list[Any] = []

            async def joins(message: Any) -> None:
                if message.get("more_body") and not held:
                    held.append(message)
                    return
                if held and message["type"] == "http.response.body":
                    joined = held.pop()["body"] + message.get("body", b"")
                    message = {**message, "body": joined}
                await send(message)

            await self.app(scope, receive, joins)

    case = CASES["a stream of 2,000 parts"]
    harmed = transcript(Case(case.ask, (Middleware(Joining),)), APPLICATIONS["plain"])
    assert harmed[0] != plain["plain"]["a stream of 2,000 parts"][0]


def test_a_layer_that_compresses_outside_of_us_sees_what_it_would(record):
    def ask(wrap):
        app = GZipMiddleware(wrap(APPLICATIONS["plain"]()), minimum_size=100)
        with served(app) as (port, _):
            return asked(port, request("/stream", "GET", "Accept-Encoding: gzip"))

    assert ask(GatewayMiddleware) == ask(lambda app: app)
    assert len(servers(record)) == 1


def test_cx_10_the_span_lasts_until_the_last_byte_and_no_longer(record):
    """A route that returns a stream is over long before; a background task long after."""
    app = fastapi()
    with served(app) as (port, _):
        asked(port, request("/stream"))
        asked(port, request("/background"))
    streamed, background = servers(record)
    assert streamed.attributes[names.HTTP_ROUTE] == "/stream"
    assert (streamed.end_time - streamed.start_time) > (background.end_time - background.start_time)


def test_requests_of_one_connection_are_no_family(record):
    """Uvicorn begins a request that is there already from within the last send before it."""
    with served(fastapi()) as (port, _):
        asked(port, request("/long", close=False) * 2 + request("/long"))
    assert [span.parent for span in servers(record)] == [None] * 3
    assert len({span.context.trace_id for span in servers(record)}) == 3


def test_beside_opentelemetry_there_is_one_server_span_and_the_same_bytes(record, plain):
    case = CASES["a stream of 2,000 parts"]
    app = fastapi()
    FastAPIInstrumentor.instrument_app(
        app, tracer_provider=record.tracer_provider, exclude_spans=["send", "receive"]
    )
    with served(app) as (port, _):
        assert case.ask(port) == plain["fastapi"]["a stream of 2,000 parts"][0]
    assert [span.name for span in servers(record)] == ["GET /stream"]


@pytest.mark.parametrize("wrap", [GatewayMiddleware, lambda app: app], ids=["by hand", "auto"])
def test_lifespan_passes(wrap, record):
    seen = []

    class Starting:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            seen.append((scope["type"], trace.get_current_span().get_span_context().is_valid))
            await self.app(scope, receive, send)

    with served(wrap(fastapi(Middleware(Starting))), lifespan="on") as (port, errors):
        asked(port, request("/long"))
    assert seen == [("lifespan", False), ("http", True)]
    assert errors == []
