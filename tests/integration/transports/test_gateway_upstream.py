"""A gateway that forwards requests as they are: its call upstream, by each client it may use."""

import asyncio
import gc
import time

import aiohttp
import httpx2
import pytest
from opentelemetry import trace

from llmlat_otel.core.serving import serving as serving_now
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import LLMLAT_PHASE_DURATION
from llmlat_semconv.phases import Phase
from tests.integration.serving import serving
from tests.integration.transports.forwarding import (
    BODY,
    CLIENTS,
    STREAM,
    call_of,
    calls,
    phases_of,
    read,
    relay,
    served,
    the_id,
)

FIRST = ["pool_wait", "connect", "upstream"]
WHOLE = [*FIRST, "finalize"]
STREAMED = [*FIRST, "upstream_stream", "finalize"]
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHERS = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"

each_client = pytest.mark.parametrize("forward", CLIENTS.values(), ids=CLIENTS)
each_async_client = pytest.mark.parametrize(
    "forward", [CLIENTS[each] for each in CLIENTS if "async" in each or each == "aiohttp"]
)


@pytest.fixture
def url(upstream):
    return f"{upstream.url}/chat/completions"


# ── What is said of it ───────────────────────────────────────────────────────────────────────────


@each_client
def test_a_stream_that_is_forwarded_is_an_upstream_call(upstream, url, record, forward):
    (status, _, parts), _ = relay(forward, url)
    assert (status, parts[-1]) == (200, b"data: [DONE]\n\n")
    span = call_of(record)
    assert span.name == "chat"
    assert phases_of(record, span) == STREAMED
    said = span.attributes
    assert said[names.LLMLAT_BOUNDARY_NAME] == "gateway"
    assert said[names.LLMLAT_STREAM_END] == "complete"
    assert said[names.GEN_AI_REQUEST_STREAM] is True
    assert said[names.SERVER_PORT] == upstream.server_port
    for unknown in (
        names.GEN_AI_PROVIDER_NAME,
        names.GEN_AI_REQUEST_MODEL,
        names.LLMLAT_STREAM_CHUNK_COUNT,
        names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT,
        names.ERROR_TYPE,
    ):
        assert unknown not in said, "nobody has read it"
    assert [each["traceparent"].split("-")[2] for each in upstream.requests] == [the_id(span)]


@each_client
def test_an_answer_that_is_no_stream_has_none(url, record, forward):
    relay(forward, url, BODY)
    span = call_of(record)
    assert phases_of(record, span) == WHOLE
    assert names.LLMLAT_STREAM_END not in span.attributes
    assert names.GEN_AI_REQUEST_STREAM not in span.attributes, "nobody has read it"


@each_client
def test_the_phases_of_a_gateway_are_measured_at_its_boundary(url, record, forward):
    relay(forward, url)
    said = {
        each.attributes[names.LLMLAT_PHASE_NAME]: each.attributes
        for each in record.spans
        if each.name.startswith("phase ")
    }
    assert {phase: each[names.LLMLAT_BOUNDARY_NAME] for phase, each in said.items()} == {
        "pool_wait": "client",
        "connect": "client",
        "upstream": "gateway",
        "upstream_stream": "gateway",
        "finalize": "client",
    }
    classes = {phase: each[names.LLMLAT_PHASE_CLASS] for phase, each in said.items()}
    assert classes["upstream"] == classes["upstream_stream"] == "remote"
    by = record.points()[LLMLAT_PHASE_DURATION.name]
    measured = {each[names.LLMLAT_PHASE_NAME]: each[names.LLMLAT_BOUNDARY_NAME] for each, _ in by}
    assert measured[Phase.UPSTREAM.value] == "gateway"
    assert measured[Phase.CONNECT.value] == "client"


@pytest.mark.parametrize("library", [httpx2.Client, httpx2.AsyncClient])
def test_a_body_that_the_client_reads_before_it_returns(url, record, library):
    async def main():
        made = library(trust_env=False)
        answer = made.post(url, content=STREAM)
        return await answer if asyncio.iscoroutine(answer) else answer

    with served() as told:
        assert asyncio.run(main()).content.endswith(b"[DONE]\n\n")
    span = call_of(record)
    assert phases_of(record, span) == STREAMED
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert told.what == ["begins", "ended"], "nobody has passed on anything of it meanwhile"


@each_client
def test_the_request_that_is_served_is_told_what_comes(url, record, forward):
    (_, _, parts), told = relay(forward, url)
    assert told.what == ["begins", *["event"] * len(parts), "ended"]
    assert told.at_ns == sorted(told.at_ns)
    assert told.at_ns[-1] == told.at_ns[-2], "it was over with its last event"


def test_reads_of_aiohttp_that_are_no_chunks_are_told_too(url, record):
    async def main():
        async with aiohttp.ClientSession() as session, session.post(url, data=STREAM) as answer:
            return [part async for part in answer.content.iter_any()]

    with served() as told:
        parts = asyncio.run(main())
    assert told.what == ["begins", *["event"] * len(parts), "ended"]


# ── What is not noticed ──────────────────────────────────────────────────────────────────────────


@each_client
@pytest.mark.parametrize("content", [STREAM, BODY], ids=["stream", "whole"])
@pytest.mark.parametrize("status", [200, 503])
def test_gateway_and_upstream_see_what_they_saw(upstream, url, request, forward, content, status):
    headers = {"x-own": "1", "traceparent": CALLER, "tracestate": "a=1", "authorization": "k"}

    def seen():
        upstream.requests.clear()
        upstream.statuses = [status]
        answer, _ = relay(forward, url, content, headers, traceparent=CALLER)
        named = {"traceparent", "tracestate"}
        return answer, [
            [(name, value) for name, value in each.items() if name not in named]
            for each in upstream.requests
        ]

    plain = seen()
    request.getfixturevalue("record")
    assert seen() == plain
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert serving_now.get() is None


@each_client
def test_the_response_is_the_librarys_own(url, record, forward):
    async def main():
        async with forward(url, STREAM, None) as answer:
            kind = type(answer.own)
            assert kind.__module__.partition(".")[0] in {"httpx", "httpx2", "aiohttp"}
            body = answer.own.content if kind is aiohttp.ClientResponse else answer.own.stream
            bases = body.__class__.__mro__
            assert isinstance(body, bases[0])
            assert [part async for part in answer.parts]

    with served():
        asyncio.run(main())


# ── How it ends ──────────────────────────────────────────────────────────────────────────────────


def ended(record):
    span = call_of(record)
    said = span.attributes
    return said.get(names.LLMLAT_STREAM_END), said.get(names.ERROR_TYPE)


async def first_part(answer):
    part = await anext(answer.parts)
    assert part.startswith(b"data: ")


@each_client
def test_closed_early(upstream, url, record, forward):
    async def main():
        async with forward(url, STREAM, None) as answer:
            await first_part(answer)
            await answer.close()
            upstream.may_go_on.set()

    upstream.may_go_on.clear()
    with served():
        asyncio.run(main())
    assert ended(record) == ("closed_early", None)
    assert phases_of(record, call_of(record)) == WHOLE, "one event is no stream"


def test_dropped_unread_it_ended_with_its_head(url, record):
    def ask(client):
        client.send(client.build_request("POST", url, content=STREAM), stream=True)

    with served(), httpx2.Client(trust_env=False) as client:
        ask(client)
        gc.collect()
    assert ended(record) == ("abandoned", None)
    assert phases_of(record, call_of(record)) == FIRST


def test_a_response_of_aiohttp_that_is_dropped_is_abandoned(upstream, url, record):
    """Its connection keeps it until the session is closed."""

    async def main():
        async with aiohttp.ClientSession() as session:
            await (await session.post(url, data=STREAM)).content.readany()

    upstream.may_go_on.clear()
    with served():
        asyncio.run(main())
    upstream.may_go_on.set()
    deadline = time.monotonic() + 5  # What the collector finds is told in a thread.
    while not calls(record) and time.monotonic() < deadline:
        gc.collect()
    assert ended(record) == ("abandoned", None)


@each_async_client
def test_cancelled(upstream, url, record, forward):
    async def main():
        upstream.may_go_on.clear()
        task = asyncio.ensure_future(read(forward, url))
        while not upstream.requests:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        upstream.may_go_on.set()

    with served():
        asyncio.run(main())
    assert ended(record) == ("cancelled", "asyncio.exceptions.CancelledError")


def test_a_read_of_aiohttp_that_was_given_up_is_not_the_end(upstream, url, record):
    async def main():
        upstream.may_go_on.clear()
        async with aiohttp.ClientSession() as session, session.post(url, data=STREAM) as answer:
            await answer.content.readany()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(answer.content.readany(), 0.01)
            upstream.may_go_on.set()
            assert (await answer.content.read()).endswith(b"[DONE]\n\n")

    with served():
        asyncio.run(main())
    assert ended(record) == ("complete", None)


@each_client
def test_an_error_of_the_upstream_is_forwarded_and_said(upstream, url, record, forward):
    upstream.statuses = [503]
    (status, _, parts), _ = relay(forward, url)
    assert (status, b"".join(parts)) == (503, b'{"error": {"message": "no"}}')
    assert ended(record) == (None, "503")
    assert not call_of(record).status.is_ok


@each_client
def test_a_connection_that_is_refused(record, forward):
    with pytest.raises(Exception, match=r"(?i)connect"):
        relay(forward, "http://127.0.0.1:9/v1/chat/completions")
    end, error = ended(record)
    assert end is None
    assert error.endswith(("ConnectError", "ClientConnectorError"))
    assert phases_of(record, call_of(record)) == ["pool_wait", "connect"]


@each_client
def test_an_upstream_that_breaks_off(record, forward):
    from tests.integration.sdk.openai_server import CUT, Server
    from tests.integration.sdk.openai_server import STREAM as EVENTS

    server = Server()
    server.events = (*EVENTS[:2], CUT)
    with serving(server), served(), pytest.raises(Exception, match=r"(?i)peer|payload|complete"):
        asyncio.run(read(forward, f"{server.url}/chat/completions"))
    end, error = ended(record)
    assert end == "failed"
    assert error.endswith(("RemoteProtocolError", "ClientPayloadError"))


@each_client
def test_a_gateways_retry_is_its_own_two_calls(upstream, url, record, forward):
    upstream.statuses = [503]
    with served(CALLER) as told:
        for _ in range(2):
            asyncio.run(read(forward, url, headers={"traceparent": CALLER}))
    ids = [the_id(each) for each in calls(record)]
    assert [each["traceparent"].split("-")[2] for each in upstream.requests] == ids
    assert len(set(ids)) == 2
    assert told.what.count("begins") == told.what.count("ended") == 2


@pytest.mark.parametrize("library", [httpx2.Client])
def test_the_same_request_sent_once_more_names_the_other_call(upstream, url, record, library):
    upstream.statuses = [503]
    with served(CALLER), library(trust_env=False) as client:
        asked = client.build_request("POST", url, content=BODY, headers={"traceparent": CALLER})
        client.send(asked)
        client.send(asked)
    ids = [the_id(each) for each in calls(record)]
    assert [each["traceparent"].split("-")[2] for each in upstream.requests] == ids
    assert len(set(ids)) == 2


@each_client
def test_a_redirect_is_no_response(upstream, url, record, forward):
    upstream.statuses = [307]
    (status, _, _), told = relay(forward, url, follow_redirects=True)
    assert status == 200
    span = call_of(record)
    assert phases_of(record, span) == [*FIRST, "pool_wait", *STREAMED[2:]]
    assert {each["traceparent"].split("-")[2] for each in upstream.requests} == {the_id(span)}
    assert told.what.count("begins") == 1


@each_client
def test_a_redirect_that_is_not_followed_is_forwarded(upstream, url, record, forward):
    upstream.statuses = [307]
    (status, _, _), _ = relay(forward, url)
    assert status == 307
    assert ended(record) == (None, None)


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("forward", ["httpx2", "aiohttp"])
def test_what_is_never_awaited_was_never_asked(url, record, forward):
    async def main():
        if forward == "aiohttp":
            async with aiohttp.ClientSession() as session:
                session._request("POST", url, data=BODY).close()
        else:
            async with httpx2.AsyncClient() as client:
                client.post(url, content=BODY).close()

    with served() as told:
        asyncio.run(main())
    assert record.spans == ()
    assert told.what == []
