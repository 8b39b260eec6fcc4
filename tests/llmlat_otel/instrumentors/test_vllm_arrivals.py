"""How requests come to vLLM: over HTTP, from an application's own code, one within another."""

from __future__ import annotations

import asyncio
import sys
from contextvars import copy_context

import pytest
from opentelemetry.trace import SpanKind

from llmlat_otel.instrumentors.vllm.arrivals import arrival
from llmlat_otel.testing import MS
from llmlat_semconv import attributes as names
from tests.llmlat_otel.instrumentors.fake_vllm import (
    ASYNC_LLM,
    FASTAPI,
    OUTPUT_PROCESSOR,
    SCHEDULER,
    request_of,
)
from tests.llmlat_otel.instrumentors.fake_vllm_core import SHAPES
from tests.llmlat_otel.instrumentors.vllm_engine import Engine
from tests.llmlat_otel.instrumentors.vllm_timed import (
    LAST,
    engine_of,
    modules_of,
    phases,
    requests,
    the_request,
)

pytestmark = pytest.mark.usefixtures("nothing_has_failed")

TRACE_ID, SPAN_ID = 0xABC, 0xDEF
NAMED = (b"traceparent", f"00-{TRACE_ID:032x}-{SPAN_ID:016x}-01".encode())


def in_a_task(work):
    """Do something in a task of its own, as servers answer a request."""

    async def run():
        await work()

    copy_context().run(asyncio.run, run())


class Server:
    """vLLM's HTTP server in front of an engine."""

    def __init__(self, clock, monkeypatch):
        self.clock = clock
        modules = modules_of(LAST)
        monkeypatch.setitem(sys.modules, OUTPUT_PROCESSOR, modules[OUTPUT_PROCESSOR])
        self.application = modules[FASTAPI].FastAPI()
        self.application.answer = self.answer
        self.engine = Engine(modules, SHAPES[LAST], clock)
        self.api = modules[ASYNC_LLM].AsyncLLM()
        self.engine.outputs = self.api.output_processor
        self.api.core = self.engine._to_core
        self.prompts = ["a"]

    async def answer(self, scope):
        self.clock.advance(3 * MS)
        for each in self.prompts:
            await self.api.add_request(request_of(SHAPES[LAST], each))
            self.clock.advance(1 * MS)

    def serve(self, path="/v1/completions", headers=(), kind="http"):
        """One request, in a task of its own as servers have it."""
        scope = {"type": kind, "path": path, "headers": list(headers)}
        in_a_task(lambda: self.application(scope, None, None))

    def finish(self):
        """Answer all that is under way."""
        waiting = [each.request_id for each in self.engine.scheduler.waiting]
        self.engine.step(dict.fromkeys(waiting, 4), **dict.fromkeys(waiting, 0))


@pytest.fixture
def server(clock, monkeypatch):
    return Server(clock, monkeypatch)


def test_it_is_accepted_as_http_comes_and_below_who_has_sent_it(server, record):
    server.serve(headers=[NAMED])
    server.finish()
    span = the_request(record)
    assert (span.context.trace_id, span.parent.span_id) == (TRACE_ID, SPAN_ID)
    assert span.kind is SpanKind.SERVER
    assert phases(record, span) == [("tokenize", 0, 3), ("queue", 3, 4), ("prefill", 4, 14)]


def test_of_nobody_that_is_named_it_is_a_root(server, record):
    server.serve()
    server.finish()
    span = the_request(record)
    assert (span.parent, span.kind) == (None, SpanKind.SERVER)


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("/v1/chat/completions", "chat"),
        ("/v1/responses", "chat"),
        ("/v1/messages", "chat"),
        ("/v1/completions", "text_completion"),
        ("/generate", "text_completion"),
        ("/v1/embeddings", "embeddings"),
    ],
)
def test_its_path_says_what_is_asked_for(path, operation, server, record):
    server.serve(path)
    server.finish()
    span = the_request(record)
    assert span.attributes[names.GEN_AI_OPERATION_NAME] == operation
    assert span.name == f"engine {operation}"


def test_the_path_itself_is_not_written(server, record):
    server.serve("/v1/chat/completions/secret")
    server.finish()
    assert not any("secret" in str(value) for value in the_request(record).attributes.values())


def test_an_application_within_another_is_the_same_request(server, record):
    inner = server.application
    outer = type(inner)()

    async def answer(scope):
        server.clock.advance(2 * MS)
        await inner({**scope, "path": "/inner"}, None, None)

    outer.answer = answer
    server.application = outer
    server.serve("/v1/chat/completions")
    server.finish()
    span = the_request(record)
    assert phases(record, span)[0] == ("tokenize", 0, 5)
    assert span.attributes[names.GEN_AI_OPERATION_NAME] == "chat"


def test_each_prompt_of_several_is_a_request_of_its_own(server, record):
    server.prompts = ["a", "b"]
    server.serve(headers=[NAMED])
    server.finish()
    found = [(each.start_time, each.parent.span_id) for each in requests(record)]
    assert found == [(found[0][0], SPAN_ID)] * 2


def test_another_turn_of_the_same_http_request_begins_with_itself(server, record):
    async def turns(scope):
        await Server.answer(server, scope)
        server.finish()
        server.prompts = ["b"]
        await Server.answer(server, scope)

    server.application.answer = turns
    server.serve()
    server.finish()
    first, second = requests(record)
    assert phases(record, first)[0] == ("tokenize", 0, 3)
    assert second.start_time >= first.end_time
    assert [name for name, _, _ in phases(record, second)] == ["queue", "prefill"]


def test_the_next_request_of_a_connection_is_another_one(server, record):
    async def both():
        for each in ("a", "b"):
            server.prompts = [each]
            server.clock.advance(50 * MS)
            scope = {"type": "http", "path": "/v1/completions", "headers": []}
            await server.application(scope, None, None)

    in_a_task(both)
    server.finish()
    first, second = requests(record)
    assert second.start_time - first.start_time == 54 * MS


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
def test_what_is_no_http_is_not_an_arrival(kind, server, record):
    server.prompts = []
    server.serve(kind=kind)

    async def seen(scope):
        assert arrival.get() is None

    server.application.answer = seen
    server.serve(kind=kind)
    assert record.spans == ()


def test_a_server_of_something_else_is_left_alone(server, record, monkeypatch):
    monkeypatch.delitem(sys.modules, OUTPUT_PROCESSOR)
    seen = []

    async def answer(scope):
        seen.append(arrival.get())

    server.application.answer = answer
    server.serve()
    assert seen == [None]


# Without a server


def test_what_the_application_asks_itself_is_accepted_as_it_asks(clock, record):
    engine = engine_of(LAST, clock)
    engine.api.tokenize = lambda: clock.advance(4 * MS)
    engine.add("a")
    assert arrival.get() is None
    engine.step({"a": 4}, a=0)
    span = the_request(record)
    assert phases(record, span) == [("tokenize", 0, 4), ("prefill", 4, 14)]
    assert (span.parent, span.kind) == (None, SpanKind.INTERNAL)


def test_an_application_whose_request_fails_is_in_none_afterwards(clock, record):
    engine = engine_of(LAST, clock)

    def fail():
        raise ValueError("too long")

    engine.api.tokenize = fail
    with pytest.raises(ValueError, match="too long"):
        engine.add("a")
    assert arrival.get() is None
    assert record.spans == ()


def test_the_scheduler_of_another_engine_knows_nothing_of_it(clock, record):
    engine, other = engine_of(LAST, clock), modules_of(LAST)[SCHEDULER]
    engine.add("a")
    assert other.Scheduler(clock.now_ns).requests == {}
    assert record.spans == ()
