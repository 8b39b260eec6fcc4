"""A request that is served: what its span says and covers, and what it lets pass."""

import asyncio
import contextvars
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import get_current
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
)

import llmlat_otel
from llmlat_otel.asgi import GatewayMiddleware
from llmlat_otel.core import exchanges
from llmlat_otel.core.guard import faults
from llmlat_otel.core.runtime import runtime
from llmlat_otel.core.serving import request_underway, serving
from llmlat_otel.settings import PhasesMode, Settings
from llmlat_otel.testing import MS, recorded
from llmlat_semconv import attributes as names
from tests.llmlat_otel.asgi_driver import (
    CALLER,
    END,
    START,
    Server,
    forwarding,
    part,
    saying,
    scope_of,
)

SECOND_NS = 1_000_000_000
EVERY_PHASE = Settings(phase_min_ns=0)
TRAILERS = {"type": "http.response.trailers", "headers": [], "more_trailers": True}
LAST_TRAILERS = {"type": "http.response.trailers", "headers": []}


def gateway(app):
    return GatewayMiddleware(app)


def only(record):
    (span,) = record.tree()
    return span


def test_a_request_is_a_span_of_its_kind_with_nothing_that_nobody_knows(clock, record):
    Server(clock).answer(gateway(saying(START, part(), END)))
    assert only(record) == {
        "name": "GET",
        "id": 1,
        "parent": None,
        "kind": "SERVER",
        "start_ns": 0,
        "end_ns": 6 * MS,
        "attributes": {
            names.HTTP_REQUEST_METHOD: "GET",
            names.HTTP_RESPONSE_STATUS_CODE: 200,
            names.LLMLAT_CONTRACT_VERSION: "0.1.0",
            names.LLMLAT_CLOCK_ANCHOR_MONOTONIC: SECOND_NS,
            names.LLMLAT_CLOCK_ANCHOR_WALL: 1_700_000_000 * SECOND_NS,
            names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY: 0,
            names.LLMLAT_CLOCK_MONOTONIC_START: SECOND_NS,
            names.LLMLAT_CLOCK_DOMAIN_ID: "manual",
        },
    }


@pytest.mark.parametrize(("method", "said", "name"), [("PURGE", "_OTHER", "HTTP")])
def test_a_method_that_nobody_knows_is_not_passed_on(method, said, name, clock, record):
    Server(clock).answer(gateway(saying(START, END)), scope_of(method=method))
    span = only(record)
    assert (span["name"], span["attributes"][names.HTTP_REQUEST_METHOD]) == (name, said)


def test_what_forwards_is_a_gateway_and_says_how_long_it_held_what_came(clock, record):
    Server(clock).answer(gateway(forwarding(clock)))
    span, relay = record.tree()
    said = span["attributes"]
    assert (span["name"], said[names.LLMLAT_BOUNDARY_NAME]) == ("gateway", "gateway")
    assert said[names.LLMLAT_RELAY_HOLD_SUM] == pytest.approx(3 * 0.003)
    assert said[names.LLMLAT_RELAY_HOLD_MAX] == pytest.approx(0.003)
    assert (relay["name"], relay["parent"], relay["kind"]) == ("phase relay", 1, "INTERNAL")
    last_sent_ns = span["end_ns"] - 2 * MS  # what says that it was the last is sent after it
    assert (relay["start_ns"], relay["end_ns"]) == (last_sent_ns - 3 * MS, last_sent_ns)
    assert relay["attributes"][names.LLMLAT_PHASE_SEQUENCE] == 2
    assert names.LLMLAT_PHASE_TRUNCATED not in relay["attributes"]


@pytest.mark.parametrize("record", [Settings(phases=PhasesMode.ATTRIBUTES)], indirect=True)
def test_phases_can_be_attributes(clock, record):
    async def app(scope, receive, send):
        exchanges.admitted()
        await forwarding(clock)(scope, receive, send)

    Server(clock).answer(gateway(app))
    said = only(record)["attributes"]
    assert said[names.LLMLAT_ROUTE_DURATION] == pytest.approx(0.003)
    assert said[names.LLMLAT_RELAY_DURATION] == pytest.approx(0.003)
    assert names.LLMLAT_ADMISSION_DURATION not in said, "it took no time"


@pytest.mark.parametrize("record", [Settings(phases=PhasesMode.OFF)], indirect=True)
def test_phases_can_be_left_out(clock, record):
    Server(clock).answer(gateway(forwarding(clock)))
    said = only(record)["attributes"]
    assert names.LLMLAT_RELAY_HOLD_SUM in said
    assert names.LLMLAT_RELAY_DURATION not in said


def test_a_phase_that_the_application_times_itself_comes_once(clock, record):
    async def app(scope, receive, send):
        exchanges.routed("/chat")
        with llmlat_otel.phase("admission"):
            clock.advance(4 * MS)
        await forwarding(clock)(scope, receive, send)

    Server(clock).answer(gateway(app))
    phases = [(each["name"], each["start_ns"], each["end_ns"]) for each in record.tree()[1:3]]
    assert phases == [("phase admission", 0, 4 * MS), ("phase route", 4 * MS, 7 * MS)]
    assert record.tree()[0]["name"] == "gateway /chat"


@pytest.mark.parametrize(
    "block", [llmlat_otel.agent("a"), llmlat_otel.tool("a"), llmlat_otel.retrieval("a")]
)
def test_a_request_with_an_operation_is_an_applications(block, clock, record):
    async def app(scope, receive, send):
        exchanges.routed("/ask")
        with block:
            await forwarding(clock)(scope, receive, send)

    Server(clock).answer(gateway(app))
    server, operation = record.tree()
    assert (server["name"], operation["parent"]) == ("GET /ask", server["id"])
    assert names.LLMLAT_BOUNDARY_NAME not in server["attributes"]
    assert names.LLMLAT_RELAY_HOLD_SUM not in server["attributes"]


# Whose child


def test_the_callers_trace_goes_on(clock, record):
    scope = scope_of(traceparent=CALLER, tracestate="a=1")
    scope["headers"].append((b"tracestate", b"b=2"))
    Server(clock).answer(gateway(saying(START, END)), scope)
    (span,) = record.spans
    assert f"{span.context.trace_id:032x}" == CALLER.split("-")[1]
    assert f"{span.parent.span_id:016x}" == CALLER.split("-")[2]
    assert span.parent.is_remote
    assert span.context.trace_state.to_header() == "a=1,b=2"


@pytest.mark.parametrize("header", ["", "00-0-0-01", "ff", CALLER + "\xe9"])
def test_a_parent_that_cannot_be_read_is_none(header, clock, record):
    scope = scope_of()
    scope["headers"] = [(b"traceparent", header.encode("latin-1"))]
    Server(clock).answer(gateway(saying(START, END)), scope)
    assert only(record)["parent"] is None
    assert upstream_faults() == 0


def upstream_faults():
    return faults().get(exchanges.TARGET, 0)


def test_what_the_application_does_is_below_it_and_its_context_is_left_as_it_was(clock, record):
    tracer = record.tracer_provider.get_tracer("app")

    async def app(scope, receive, send):
        tracer.start_span("inside").end()
        await saying(START, END)(scope, receive, send)

    async def main():
        before = get_current(), serving.get()
        await GatewayMiddleware(app)(scope_of(), server.receive, server.send)
        return before == (get_current(), serving.get())

    server = Server(clock)
    assert asyncio.run(main())
    assert {span["name"]: span["parent"] for span in record.tree()} == {"GET": None, "inside": 1}


def test_background_work_is_below_it_and_after_it(clock, record):
    tracer = record.tracer_provider.get_tracer("app")
    seen = []

    async def background():
        seen.append(request_underway())
        clock.advance(50 * MS)
        with llmlat_otel.tool("later"):
            tracer.start_span("work").end()

    Server(clock).answer(gateway(saying(START, END, after=background)))
    server, later, _ = record.tree()
    assert (server["end_ns"], later["start_ns"], later["parent"]) == (4 * MS, 54 * MS, 1)
    assert seen == [None]


def test_the_span_is_out_of_the_way_as_the_last_byte_is_handed_over(clock, record):
    """A server begins the connection's next request from within that."""
    seen = []

    class Pipelining(Server):
        async def send(self, message):
            if message is END:
                is_current = trace.get_current_span().get_span_context().is_valid
                seen.append((is_current, serving.get()))
            await super().send(message)

    Pipelining(clock).answer(gateway(saying(START, part(), END)))
    assert seen == [(False, None)]


class AllButTheFirst(Sampler):
    """Samples every trace but the first."""

    def should_sample(self, parent_context, trace_id, name, *args, **kwargs):
        return SamplingResult(Decision.DROP if trace_id == 1 else Decision.RECORD_AND_SAMPLE)

    def get_description(self):
        return "all but the first"


@pytest.mark.parametrize(
    ("sampler", "parents"), [(ALWAYS_ON, [None, None]), (ParentBased(AllButTheFirst()), [None])]
)
def test_a_request_that_is_over_has_nothing_to_say_of_the_next_one(sampler, parents, clock):
    """Asyncio may call back for the next request in the context of this one."""
    contexts = []

    async def app(scope, receive, send):
        contexts.append(contextvars.copy_context())
        await saying(START, END)(scope, receive, send)

    with recorded(clock=clock, sampler=sampler) as record:
        Server(clock).answer(gateway(app))
        contexts[0].run(Server(clock).answer, gateway(app))
    assert [span["parent"] for span in record.tree()] == parents


def test_what_is_never_awaited_has_never_been(clock, record):
    app: Any = saying(START, END)
    exchange: Any = exchanges.arrived(app, scope_of(), Server(clock).receive, app)
    exchange.run(app).close()
    assert runtime().emitter.spans_made() == 0


def test_a_span_that_is_current_at_the_arrival_is_the_parent(clock, record):
    tracer = record.tracer_provider.get_tracer("app")
    with tracer.start_as_current_span("outside"):
        Server(clock).answer(gateway(saying(START, END)))
    assert {each["name"]: each["parent"] for each in record.tree()} == {"outside": None, "GET": 1}
