"""Beside OpenTelemetry's own instrumentation and FastAPI's, whichever is around the other."""

from typing import Any

import pytest
from fastapi import FastAPI
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

import llmlat_otel
from llmlat_otel.asgi import GatewayMiddleware
from llmlat_semconv import attributes as names
from tests.llmlat_otel.asgi_driver import CALLER, Server, scope_of
from tests.llmlat_otel.instrumentors.asgi_apps import (
    answering,
    fastapi,
    phases,
    server,
    takes,
)

pytestmark = pytest.mark.usefixtures("all_are_put_back")


def theirs_on_the_application(app, provider):
    FastAPIInstrumentor.instrument_app(app, tracer_provider=provider)
    return app


def theirs_around(app, provider):
    return OpenTelemetryMiddleware(app, tracer_provider=provider, exclude_spans=["send", "receive"])


def theirs_as_a_layer(app, provider):
    app.add_middleware(OpenTelemetryMiddleware, tracer_provider=provider)
    return app


def ours_around_theirs(app, provider):
    return GatewayMiddleware(theirs_on_the_application(app, provider))


def ours_within_theirs(app, provider):
    app.add_middleware(GatewayMiddleware)
    return theirs_on_the_application(app, provider)


OTHERS = [
    theirs_on_the_application,
    theirs_around,
    theirs_as_a_layer,
    ours_around_theirs,
    ours_within_theirs,
]


@pytest.mark.parametrize("wrap", OTHERS)
@pytest.mark.parametrize("is_found", [True, False], ids=["found", "by hand"])
def test_opentelemetrys_instrumentation_keeps_its_span_and_it_is_the_only_one(
    wrap, is_found, clock, record
):
    if is_found:
        llmlat_otel.instrument()
    app = fastapi(clock, takes(clock, 5))
    if not is_found and wrap is not ours_around_theirs and wrap is not ours_within_theirs:
        app.add_middleware(GatewayMiddleware)
    Server(clock).answer(wrap(app, record.tracer_provider), scope_of("/chat/m", traceparent=CALLER))
    span = server(record)
    assert span["name"].startswith("GET")
    assert span["parent"] == int(CALLER.split("-")[2], 16)
    assert span["attributes"][names.LLMLAT_BOUNDARY_NAME] == "gateway"
    assert span["attributes"][names.LLMLAT_RELAY_HOLD_SUM] > 0
    if is_found:
        assert phases(record)["admission"] >= 5
        assert phases(record)["route"] == 3
    assert "relay" in phases(record)
    parents = {each["parent"] for each in record.tree() if each["name"].startswith("phase")}
    assert parents == {span["id"]}


@pytest.mark.parametrize("is_around", [True, False])
def test_fastapi_that_makes_its_own_spans_keeps_them(is_around, clock, record):
    llmlat_otel.instrument()
    app = FastAPI(telemetry={"tracer_provider": record.tracer_provider, "operation_spans": False})
    endpoint = answering(clock)

    @app.get("/chat/{model}")
    async def chat(model: str) -> Any:
        return await endpoint()

    asked: Any = GatewayMiddleware(app) if is_around else app
    Server(clock).answer(asked, scope_of("/chat/m", traceparent=CALLER))
    span = server(record)
    assert span["name"] == "GET /chat/{model}"
    assert span["attributes"][names.LLMLAT_BOUNDARY_NAME] == "gateway"
    assert {"route", "relay"} <= set(phases(record))
