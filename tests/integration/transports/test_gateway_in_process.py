"""A gateway that asks another one in its own process: each has its span, and its call upstream."""

import asyncio

import httpx
import httpx2
import pytest
from opentelemetry.trace import SpanKind
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

from tests.integration.transports.forwarding import BODY, parent_id, the_id
from tests.llmlat_otel.asgi_driver import REQUEST, scope_of

PATH = "/v1/chat/completions"


def gateway(library, url, transport=None, after=None):
    """Forwards what it is asked, to a server or to an application of this process."""

    async def forward(request):
        content = await request.body()
        async with library.AsyncClient(transport=transport, trust_env=False) as client:
            answer = await client.post(url, content=content)
        return Response(answer.content, answer.status_code, background=after)

    return Starlette(routes=[Route(PATH, forward, methods=["POST"])])


def ask(app):
    sent = []

    async def receive():
        return {**REQUEST, "body": BODY}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope_of(PATH, "POST"), receive, send))
    return sent[0]["status"]


def chain(record):
    """The requests and calls, from the one that was asked first to the one that it has led to."""
    found = {
        the_id(each): each
        for each in record.spans
        if each.kind in {SpanKind.SERVER, SpanKind.CLIENT}
    }
    under = {parent_id(each): each for each in found.values() if each.parent is not None}
    (at,) = (each for each in found.values() if each.parent is None)
    yield at
    while (at := under.get(the_id(at))) is not None:
        yield at


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize("is_mounted", [False, True])
def test_each_of_two_gateways_in_one_process_has_its_own_call(
    library, is_mounted, upstream, record
):
    inner = gateway(library, f"{upstream.url}/chat/completions")
    if is_mounted:
        inner = Starlette(routes=[Mount("/", inner)])
    outer = gateway(library, f"http://inner{PATH}", library.ASGITransport(app=inner))
    assert ask(outer) == 200
    assert [(each.name, each.kind) for each in chain(record)] == [
        (f"gateway {PATH}", SpanKind.SERVER),
        ("chat", SpanKind.CLIENT),
        (f"gateway {PATH}", SpanKind.SERVER),
        ("chat", SpanKind.CLIENT),
    ]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_what_the_inner_one_asks_after_its_last_byte_is_nobodys(library, upstream, record):
    url = f"{upstream.url}/chat/completions"

    async def after():
        async with library.AsyncClient(trust_env=False) as client:
            await client.post(url, content=BODY)

    inner = gateway(library, url, after=after)
    outer = gateway(library, f"http://inner{PATH}", library.ASGITransport(app=inner))
    assert ask(outer) == 200
    assert len(upstream.requests) == 2
    assert sum(each.kind is SpanKind.CLIENT for each in record.spans) == 2
