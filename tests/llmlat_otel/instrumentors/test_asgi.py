"""Starlette and FastAPI: found however they are built, one span for each request, by its route."""

import asyncio
from typing import Any

import pytest
from fastapi import BackgroundTasks, FastAPI
from fastapi.responses import StreamingResponse
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, Router

import llmlat_otel
from llmlat_otel.asgi import GatewayMiddleware
from llmlat_otel.core.serving import serving
from llmlat_otel.testing import MS
from llmlat_semconv import attributes as names
from tests.llmlat_otel.asgi_driver import CALLER, Server, scope_of
from tests.llmlat_otel.instrumentors.asgi_apps import (
    Takes,
    answering,
    fastapi,
    phases,
    server,
    servers,
    starlette,
    takes,
)

pytestmark = pytest.mark.usefixtures("all_are_put_back")


@pytest.mark.parametrize("make", [starlette, fastapi])
@pytest.mark.parametrize("is_built_first", [True, False])
def test_an_application_is_found_whenever_it_was_built(make, is_built_first, clock, record):
    app = make(clock) if is_built_first else None
    llmlat_otel.instrument()
    Server(clock).answer(app or make(clock), scope_of("/chat/m", traceparent=CALLER))
    span = server(record)
    assert span["name"] == "gateway /chat/{model}"
    assert span["attributes"][names.HTTP_ROUTE] == "/chat/{model}"
    assert span["parent"] == int(CALLER.split("-")[2], 16)
    assert phases(record)["route"] == 3
    assert phases(record)["relay"] >= 2


def test_an_application_that_is_put_back_is_untimed(clock, record):
    llmlat_otel.instrument()
    llmlat_otel.uninstrument()
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("a"))])
    assert Server(clock).answer(app).sent[1]["body"] == b"a"
    assert record.spans == ()


def test_admission_lasts_until_the_endpoint_is_entered(clock, record):
    llmlat_otel.instrument()
    app = starlette(
        clock,
        routes=[
            Mount(
                "/v1",
                routes=[
                    Route(
                        "/chat",
                        answering(clock),
                        middleware=[Middleware(Takes, clock=clock, ms=4)],
                    )
                ],
                middleware=[Middleware(Takes, clock=clock, ms=2)],
            )
        ],
        middleware=[Middleware(Takes, clock=clock, ms=1)],
    )
    Server(clock).answer(app, scope_of("/v1/chat"))
    assert (phases(record)["admission"], phases(record)["route"]) == (7, 3)
    assert server(record)["name"] == "gateway /v1/chat"


@pytest.mark.parametrize("prefix", ["", "/v1/{tenant}"])
def test_dependencies_are_part_of_admission(prefix, clock, record):
    llmlat_otel.instrument()
    app = fastapi(clock, takes(clock, 5), takes(clock, 6), prefix=prefix)
    Server(clock).answer(app, scope_of(f"{prefix.format(tenant='t')}/chat/m"))
    assert (phases(record)["admission"], phases(record)["route"]) == (11, 3)
    assert server(record)["name"] == f"gateway {prefix}/chat/{{model}}"


def test_a_class_as_endpoint_is_admitted_at_its_route(clock, record):
    class Chat(HTTPEndpoint):
        async def get(self, request):
            return await endpoint()

    endpoint = answering(clock)
    llmlat_otel.instrument()
    Server(clock).answer(Starlette(routes=[Route("/c", Chat)]), scope_of("/c"))
    assert (phases(record)["route"], server(record)["name"]) == (3, "gateway /c")


def mounted(clock, app):
    return Starlette(routes=[Mount("/m/{k}", app)])


@pytest.mark.parametrize("inner", [starlette, fastapi])
@pytest.mark.parametrize("outer", [mounted, FastAPI])
def test_a_mounted_application_is_one_span_with_the_whole_route(inner, outer, clock, record):
    llmlat_otel.instrument()
    app = inner(clock)
    if outer is FastAPI:
        around = FastAPI()
        around.mount("/m/{k}", app)
    else:
        around = outer(clock, app)
    Server(clock).answer(around, scope_of("/m/secret/chat/m"))
    assert server(record)["attributes"][names.HTTP_ROUTE] == "/m/{k}/chat/{model}"


@pytest.mark.parametrize("make", [starlette, fastapi])
def test_the_middleware_beside_us_lets_the_request_pass(make, clock, record):
    llmlat_otel.instrument()
    app = make(clock)
    app.add_middleware(GatewayMiddleware)
    Server(clock).answer(GatewayMiddleware(app), scope_of("/chat/m"))
    assert len(servers(record)) == 1
    assert set(phases(record)) == {"route", "relay"}


@pytest.mark.parametrize(
    ("path", "method", "name", "status"),
    [
        ("/nothing/here", "GET", "GET", 404),
        ("/chat/m", "DELETE", "DELETE /chat/{model}", 405),
        ("/chat/m/", "GET", "GET", 307),
    ],
)
@pytest.mark.parametrize("make", [starlette, fastapi])
def test_a_request_that_no_endpoint_answers(make, path, method, name, status, clock, record):
    llmlat_otel.instrument()
    Server(clock).answer(make(clock), scope_of(path, method))
    span = server(record)
    assert (span["name"], span["attributes"][names.HTTP_RESPONSE_STATUS_CODE]) == (name, status)
    assert path not in span["attributes"].values()


def test_an_exception_in_an_endpoint_is_what_failed(clock, record):
    def fail(request):
        raise LookupError("their secret")

    llmlat_otel.instrument()
    asked = Server(clock).answer(Starlette(routes=[Route("/f", fail)]), scope_of("/f"))
    assert (asked.sent[0]["status"], type(asked.raised)) == (500, LookupError)
    span = server(record)
    assert span["attributes"][names.ERROR_TYPE] == "LookupError"
    assert "secret" not in str(span)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_background_tasks_are_no_part_of_the_request(is_streamed, clock, record):
    app = FastAPI()
    seen = []

    async def later():
        clock.advance(500 * MS)
        seen.append(serving.get())
        with llmlat_otel.tool("later"):
            pass

    @app.get("/b")
    async def endpoint(tasks: BackgroundTasks) -> Any:
        tasks.add_task(later)
        return StreamingResponse(iter(["a"]), background=tasks) if is_streamed else {"a": 1}

    llmlat_otel.instrument()
    Server(clock).answer(app, scope_of("/b"))
    span, tool = record.tree()
    assert (span["name"], span["kind"]) == ("GET /b", "SERVER")
    assert span["end_ns"] < 10 * MS < tool["start_ns"]
    assert tool["parent"] == span["id"]
    assert seen == [None]


class Buffering:
    """Keeps a body until it is whole."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        parts = []

        async def keep(message: Any) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            parts.append(message["body"])
            if not message.get("more_body", False):
                await send({"type": "http.response.body", "body": b"".join(parts)})

        await self.app(scope, receive, keep)


@pytest.mark.parametrize(("layers", "held_s"), [((), 0.002), ((Middleware(Buffering),), 0.012)])
def test_gw_08_a_layer_that_keeps_a_stream_back_is_seen_to(layers, held_s, clock, record):
    """The time is the gateway's, and not the model's."""
    llmlat_otel.instrument()
    Server(clock).answer(starlette(clock, middleware=layers), scope_of("/chat/m"))
    assert server(record)["attributes"][names.LLMLAT_RELAY_HOLD_MAX] == pytest.approx(held_s)


def test_gw_10_headers_that_are_held_back_are_no_part_of_admission(clock, record):
    """The layer sends headers with the first part of the body: admission is over long before."""
    llmlat_otel.instrument()
    app = starlette(clock, middleware=[Middleware(GZipMiddleware, minimum_size=1)])
    scope = scope_of("/chat/m", **{"accept-encoding": "gzip"})
    Server(clock).answer(app, scope)
    assert (phases(record).get("admission", 0), phases(record)["route"]) == (0, 3)


def test_a_router_alone_is_no_application(clock, record):
    llmlat_otel.instrument()
    router = Router([Route("/r", lambda _: PlainTextResponse("a"))])
    assert Server(clock).answer(router, scope_of("/r")).sent[1]["body"] == b"a"
    assert record.spans == ()
    Server(clock).answer(GatewayMiddleware(router), scope_of("/r"))
    assert server(record)["name"] == "GET /r"


def test_requests_side_by_side_do_not_mix(clock, record):
    llmlat_otel.instrument()
    app = starlette(clock)

    async def main():
        paths = [f"/chat/{number}" for number in range(20)]
        asked = (Server(clock).ask(app, scope_of(path)) for path in paths)
        await asyncio.gather(*asked)

    asyncio.run(main())
    assert [each["name"] for each in servers(record)] == ["gateway /chat/{model}"] * 20
    assert all(each["attributes"][names.LLMLAT_RELAY_HOLD_SUM] for each in servers(record))
