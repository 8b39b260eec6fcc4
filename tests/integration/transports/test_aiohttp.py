"""aiohttp over real connections: in a call, on its own, and without a call above it."""

import asyncio
import threading
import weakref
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import pytest

import llmlat_otel
from tests.integration.coexistence.upstream import Upstream
from tests.integration.serving import serving

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
FIRST = ["prepare", "pool_wait", "connect", "send", "wait"]
AGAIN = ["prepare", "pool_wait", "send", "wait"]
THEIRS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def the_id(span):
    return f"{span.get_span_context().span_id:016x}"


def parents(upstream):
    return [each["traceparent"].split("-")[2] for each in upstream.requests]


# ── On its own ───────────────────────────────────────────────────────────────────────────────────


async def post(session, upstream, **options):
    async with session.post(f"{upstream.url}/chat/completions", json=ASK, **options) as answer:
        return (await answer.json())["model"]


def test_a_request_of_a_call_is_its_attempt(upstream, record, call, phases):
    async def main():
        async with aiohttp.ClientSession() as session:
            assert await call(lambda: post(session, upstream)) == "m-2"

    asyncio.run(main())
    assert phases() == [*FIRST, "finalize"]
    assert parents(upstream) == [the_id(record.spans[0])]
    assert "baggage" not in upstream.requests[0]


@pytest.mark.parametrize("headers", [{"TraceParent": THEIRS}, [("traceparent", THEIRS)]])
def test_a_parent_that_is_named_already_stays(upstream, record, call, headers):
    before = type(headers)(headers)

    async def main():
        async with aiohttp.ClientSession() as session:
            await call(lambda: post(session, upstream, headers=headers))

    asyncio.run(main())
    assert upstream.requests[0]["traceparent"] == THEIRS
    assert "tracestate" not in upstream.requests[0]
    assert headers == before


def test_the_users_headers_are_not_written_to(upstream, record, call):
    headers = {"x-own": "1"}

    async def main():
        async with aiohttp.ClientSession(headers=headers) as session:
            await call(lambda: post(session, upstream, headers=headers))
            assert "traceparent" not in session.headers

    asyncio.run(main())
    assert headers == {"x-own": "1"}
    assert "traceparent" in upstream.requests[0]


def test_a_session_is_as_it_was_and_its_own_traces_see_what_they_saw(upstream, call, request):
    def seen_by_the_users_trace(run):
        seen = []
        config = aiohttp.TraceConfig()
        for name in (
            "on_request_start",
            "on_connection_create_start",
            "on_connection_create_end",
            "on_request_headers_sent",
            "on_request_chunk_sent",
            "on_response_chunk_received",
            "on_request_end",
        ):

            async def note(session, _context, _params, name=name):
                seen.append((name, session.trace_configs == [config]))

            getattr(config, name).append(note)

        async def main():
            async with aiohttp.ClientSession(trace_configs=[config]) as session:
                await run(lambda: post(session, upstream))
                assert session.trace_configs == [config]

        asyncio.run(main())
        return seen

    plain = seen_by_the_users_trace(lambda function: function())
    request.getfixturevalue("record")
    assert seen_by_the_users_trace(call) == plain


def test_a_session_that_was_made_before_is_timed(upstream, call, request):
    async def main():
        async with aiohttp.ClientSession() as session:
            request.getfixturevalue("record")
            await call(lambda: post(session, upstream))

    asyncio.run(main())
    assert request.getfixturevalue("phases")() == [*FIRST, "finalize"]


def test_a_redirect_is_no_response(upstream, record, call, phases):
    upstream.statuses = [307]

    async def main():
        async with aiohttp.ClientSession() as session:
            await call(lambda: post(session, upstream))

    asyncio.run(main())
    assert phases() == [*FIRST, *AGAIN[1:], "finalize"]
    assert len(set(parents(upstream))) == 1


def test_a_redirect_to_another_server_connects_once_more(upstream, record, call, phases):
    other = Upstream()
    with serving(other):
        upstream.statuses, upstream.location = [307], f"{other.url}/chat/completions"

        async def main():
            async with aiohttp.ClientSession() as session:
                await call(lambda: post(session, upstream))

        asyncio.run(main())
    assert phases() == [*FIRST, *FIRST[1:], "finalize"]


def test_what_is_sent_meanwhile_is_none_of_the_calls(upstream, record, call, phases):
    async def fetch_token(request, handler):
        async with aiohttp.ClientSession() as other:
            await post(other, upstream)
        return await handler(request)

    async def main():
        async with aiohttp.ClientSession(middlewares=[fetch_token]) as session:
            await call(lambda: post(session, upstream))

    asyncio.run(main())
    assert ["traceparent" in each for each in upstream.requests] == [False, True]
    assert phases() == [*FIRST, "finalize"]


def test_a_request_to_somebody_else_is_none_of_the_calls(upstream, record, call, phases):
    async def main():
        async with aiohttp.ClientSession() as session:
            url = upstream.url.replace("127.0.0.1", "localhost")
            await call(lambda: session.post(f"{url}/chat/completions", json=ASK).__aenter__())

    asyncio.run(main())
    assert "traceparent" not in upstream.requests[0]
    assert phases() == ["prepare"]


@pytest.fixture
def slow():
    """A peer that takes a request and answers it only when it is told to."""
    told = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            told.wait(10)
            left = int(self.headers["content-length"])
            while left:
                left -= len(self.rfile.read(min(left, 1 << 20)))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}", told


async def tell_after(duration_s, told):
    await asyncio.sleep(duration_s)
    told.set()


async def post_bytes(session, url, content):
    async with session.post(url, data=content) as answer:
        return await answer.read()


def test_waiting_for_a_connection_of_the_pool_is_a_phase(slow, record, call_anyone):
    url, told = slow

    async def main():
        connector = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(connector=connector) as session:
            held = asyncio.create_task(post_bytes(session, url, b"x"))
            await asyncio.sleep(0)
            asked = call_anyone(lambda: post_bytes(session, url, b"x"))
            await asyncio.gather(held, asked, tell_after(0.1, told))

    asyncio.run(main())
    (waited,) = [each for each in record.spans if each.name == "phase pool_wait"]
    assert waited.end_time - waited.start_time > 50_000_000


def test_the_body_is_sent_until_its_last_byte_is_written(slow, record, call_anyone):
    """What the peer does not take at once is still being sent."""
    url, told = slow

    async def main():
        async with aiohttp.ClientSession() as session:
            content = b"x" * (16 << 20)
            asked = call_anyone(lambda: post_bytes(session, url, content))
            await asyncio.gather(asked, tell_after(0.2, told))

    asyncio.run(main())
    (sent,) = [each for each in record.spans if each.name == "phase send"]
    assert sent.end_time - sent.start_time > 100_000_000


READS = {
    "read": lambda content: content.read(),
    "read some": lambda content: content.read(4),
    "readany": lambda content: content.readany(),
    "readchunk": lambda content: content.readchunk(),
    "readexactly": lambda content: content.readexactly(4),
    "readline": lambda content: content.readline(),
    "readuntil": lambda content: content.readuntil(b","),
    "for": lambda content: anext(aiter(content)),
    "iter_any": lambda content: anext(content.iter_any()),
    "iter_chunked": lambda content: anext(content.iter_chunked(4)),
    "iter_chunks": lambda content: anext(content.iter_chunks()),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_the_first_part_of_the_body_ends_the_wait_however_it_is_read(
    upstream, record, call, phases, read
):
    async def main():
        async with aiohttp.ClientSession() as session:
            url = f"{upstream.url}/chat/completions"
            async with session.post(url, json=ASK) as plain:
                expected = await read(plain.content)

            async def ask():
                async with session.post(url, json=ASK) as answer:
                    assert isinstance(answer.content, aiohttp.StreamReader)
                    return await read(answer.content)

            assert await call(ask) == expected

    asyncio.run(main())
    assert phases() == [*AGAIN, "finalize"]


def test_a_response_is_gone_with_the_last_reference_to_it(upstream, record, call):
    async def main():
        async with aiohttp.ClientSession() as session:

            async def ask():
                answer = await session.post(f"{upstream.url}/chat/completions", json=ASK)
                await answer.read()
                return weakref.ref(answer)

            assert (await call(ask))() is None, "its connection is released then, at the latest"

    asyncio.run(main())


# ── Without a call above it ──────────────────────────────────────────────────────────────────────


def test_a_request_without_a_call_is_none_of_our_business(upstream, record):
    async def main():
        async with aiohttp.ClientSession() as session:
            url = f"{upstream.url}/chat/completions"
            async with session.post(url, json=ASK) as answer:
                assert type(answer.content) is aiohttp.StreamReader
                await answer.read()

    asyncio.run(main())
    assert "traceparent" not in upstream.requests[0]
    assert record.spans == ()


def test_uninstrument_gives_aiohttp_back_while_a_response_is_open(upstream, record, call, phases):
    async def main():
        async with aiohttp.ClientSession() as session:
            url = f"{upstream.url}/chat/completions"

            async def ask():
                async with session.post(url, json={**ASK, "stream": True}) as answer:
                    llmlat_otel.uninstrument()
                    return await answer.read()

            assert b"[DONE]" in await call(ask)

    asyncio.run(main())
    assert phases() == [*FIRST, "finalize"]
    assert aiohttp.ClientSession._request.__module__ == "aiohttp.client"
    assert not hasattr(aiohttp.ClientSession._request, "__wrapped__")
