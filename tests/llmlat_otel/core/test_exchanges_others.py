"""A request that others serve too, or that is none of ours."""

import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
)

from llmlat_otel.asgi import GatewayMiddleware
from llmlat_otel.core import exchanges
from llmlat_otel.core.serving import serving
from llmlat_otel.settings import EXCLUDED_URLS, Settings
from llmlat_otel.testing import MS, recorded
from llmlat_semconv import attributes as names
from tests.llmlat_otel.asgi_driver import (
    CALLER,
    END,
    SILENT_CALLER,
    START,
    Server,
    forwarding,
    saying,
    scope_of,
)

EVERY_PHASE = Settings(phase_min_ns=0)


def gateway(app):
    return GatewayMiddleware(app)


def only(record):
    (span,) = record.tree()
    return span


class AllButTheFirst(Sampler):
    """Samples every trace but the first."""

    def should_sample(self, parent_context, trace_id, name, *args, **kwargs):
        return SamplingResult(Decision.DROP if trace_id == 1 else Decision.RECORD_AND_SAMPLE)

    def get_description(self):
        return "all but the first"


# Whose span


def served_by_others(record, app):
    """An instrumentation of somebody else's, that ends its span with the last byte."""
    tracer, clock = record.tracer_provider.get_tracer("theirs"), record.clock

    async def theirs(scope, receive, send):
        kind, start_time = trace.SpanKind.SERVER, clock.wall_ns
        span = tracer.start_span("theirs", kind=kind, start_time=start_time)

        async def sends(message):
            await send(message)
            if message is END:
                span.end(clock.wall_ns)

        with trace.use_span(span):
            await app(scope, receive, sends)

    return theirs


@pytest.mark.parametrize("record", [EVERY_PHASE, Settings()], indirect=True)
def test_the_span_of_others_around_us_is_taken_and_says_what_it_can(clock, record):
    async def app(scope, receive, send):
        exchanges.admitted()
        await forwarding(clock)(scope, receive, send)

    Server(clock).answer(served_by_others(record, gateway(app)))
    server, route, relay = record.tree()
    assert (server["name"], route["name"], relay["name"]) == (
        "theirs",
        "phase route",
        "phase relay",
    )
    assert {route["parent"], relay["parent"]} == {server["id"]}
    said = server["attributes"]
    assert (said[names.LLMLAT_BOUNDARY_NAME], said[names.LLMLAT_CONTRACT_VERSION]) == (
        "gateway",
        "0.1.0",
    )
    assert said[names.LLMLAT_RELAY_HOLD_SUM] == pytest.approx(3 * 0.003)
    assert names.HTTP_REQUEST_METHOD not in said, "it is theirs to say"
    assert relay["end_ns"] == server["end_ns"] - 2 * MS


def test_the_span_of_others_is_left_alone_where_nothing_is_forwarded(clock, record):
    Server(clock).answer(served_by_others(record, gateway(saying(START, END))))
    assert only(record)["attributes"] == {}


def test_the_span_of_others_within_us_is_taken_where_they_are_known(clock, record):
    class OpenTelemetryMiddleware:
        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            await served_by_others(record, self.app)(scope, receive, send)

    Server(clock).answer(gateway(OpenTelemetryMiddleware(forwarding(clock))))
    server, relay = record.tree()
    assert (server["name"], server["parent"]) == ("theirs", None)
    assert (relay["name"], relay["parent"]) == ("phase relay", server["id"])
    assert server["attributes"][names.LLMLAT_RELAY_HOLD_MAX] == pytest.approx(0.003)


def test_what_others_do_not_sample_is_not_sampled(clock):
    with recorded(clock=clock, sampler=ParentBased(AllButTheFirst())) as record:
        Server(clock).answer(served_by_others(record, gateway(forwarding(clock))))
    assert record.spans == ()


def test_a_middleware_within_another_lets_the_request_pass(clock, record):
    Server(clock).answer(gateway(gateway(forwarding(clock))))
    assert [span["name"] for span in record.tree()] == ["gateway", "phase relay"]


# What is left alone


@pytest.mark.parametrize("kind", ["lifespan", "websocket", "unheard.of"])
def test_other_scopes_pass_untouched(kind, clock, record):
    seen = []

    async def app(*given):
        seen.extend([*given, serving.get()])

    given = ({"type": kind}, Server(clock).receive, Server(clock).send)
    asyncio.run(gateway(app)(*given))
    assert all(one is other for one, other in zip(seen, (*given, None), strict=True))
    assert record.spans == ()


def test_an_unsampled_request_is_passed_on_by_the_servers_own_functions(clock):
    seen, server = [], Server(clock)

    async def app(scope, receive, send):
        seen.append((receive, send))
        await forwarding(clock)(scope, receive, send)

    with recorded(clock=clock, sampler=ParentBased(ALWAYS_ON)) as record:
        server.answer(gateway(app), scope_of(traceparent=SILENT_CALLER))
    assert seen == [(server.receive, server.send)]
    assert record.spans == ()


def test_the_next_request_of_a_connection_is_none_of_one_that_nobody_hears(clock):
    """A server reads on while the background of the one before runs, in the context of that."""

    async def app(scope, receive, send):
        await saying(START, END)(scope, receive, send)
        await asyncio.create_task(Server(clock).ask(gateway(saying(START, END)), after))

    after = scope_of(traceparent=CALLER)
    with recorded(clock=clock, sampler=ParentBased(ALWAYS_ON)) as record:
        Server(clock).answer(gateway(app), scope_of(traceparent=SILENT_CALLER))
    assert only(record)["name"] == "GET"
    parent = record.spans[0].parent
    assert parent is not None
    assert f"{parent.span_id:016x}" == CALLER.split("-")[2]


@pytest.mark.parametrize("handed_on", [lambda scope: scope, dict], ids=["as it is", "a copy"])
def test_an_application_within_one_that_nobody_hears_is_none_of_its_own(handed_on, clock):
    async def app(scope, receive, send):
        await gateway(saying(START, END))(handed_on(scope), receive, send)

    with recorded(clock=clock, sampler=ParentBased(AllButTheFirst())) as record:
        Server(clock).answer(gateway(app))
    assert record.spans == ()


@pytest.mark.parametrize(
    ("urls", "count"),
    [("healthz", 0), ("nothing,/health", 0), ("^http://127.0.0.1:8000/healthz$", 0), ("/z", 1)],
)
def test_urls_can_be_excluded(urls, count, clock):
    settings = Settings.from_environment({EXCLUDED_URLS: urls})
    with recorded(clock=clock, settings=settings) as record:
        Server(clock).answer(gateway(saying(START, END)), scope_of("/healthz"))
    assert len(record.spans) == count


@pytest.mark.parametrize(("urls", "is_refused"), [("(", True), (" , ", False), ("", False)])
def test_urls_that_say_nothing_exclude_nothing(urls, is_refused):
    settings = Settings.from_environment({EXCLUDED_URLS: urls})
    assert settings.excluded_urls is None
    assert bool(settings.refused) is is_refused


def test_where_silence_is_asked_for_nothing_is_recorded(clock, record):
    with suppress_instrumentation():
        Server(clock).answer(gateway(saying(START, END)))
    assert record.spans == ()


def test_the_scope_is_handed_on_as_it_is(clock, record):
    seen, scope = [], scope_of(traceparent=CALLER)
    before = dict(scope)

    async def app(scope, receive, send):
        seen.append((scope, dict(scope)))

    Server(clock).answer(gateway(app), scope)
    assert seen[0][0] is scope
    assert seen[0][1] == before
