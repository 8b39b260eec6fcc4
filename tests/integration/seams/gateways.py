"""Reference programs: gateways, which forward what they are asked."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import cache
from typing import Any, Final

import aiohttp
import httpcore2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.integration.seams import network as net
from tests.integration.seams.app import DONE, App, UserError, programs

PATH: Final = "/v1/chat/completions"
CALLER: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

Endpoint = Callable[[Request], Awaitable[Response]]


async def _live(app: App, gateway: Starlette) -> None:
    """Have a gateway begin, and end."""
    kinds = iter(("startup", "shutdown"))

    async def receive() -> dict[str, Any]:
        return {"type": f"lifespan.{next(kinds)}"}

    async def send(message: MutableMapping[str, Any]) -> None:
        app.say(message["type"])

    await gateway({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)


async def _serve(app: App, forward: Endpoint) -> None:
    """Have a gateway answer a request."""
    gateway = Starlette(routes=[Route(PATH, forward, methods=["POST"])])
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": PATH,
        "query_string": b"",
        "headers": [(b"traceparent", CALLER.encode())],
        "server": ("gateway", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b'{"model":"m"}'}

    async def send(message: MutableMapping[str, Any]) -> None:
        said = {name: str(value) for name, value in message.items()}
        app.say(*sorted(said.items()))

    await gateway(scope, receive, send)


def _client(app: App, *answers: Any) -> Any:
    app.network.answers.extend(answers)
    return (net.async_client if app.is_async else net.client)(app.network)


async def _asked(client: Any, request: Request, host: str = "model") -> Any:
    headers = {"traceparent": request.headers["traceparent"], "tracestate": "a=1"}
    content = await request.body()
    return client.build_request("POST", f"http://{host}{PATH}", content=content, headers=headers)


async def _parts(app: App, answer: Any) -> AsyncIterator[bytes]:
    parts = answer.aiter_raw() if app.is_async else answer.iter_raw()
    while (part := await app.step(parts)) is not DONE:
        yield part


async def _closed(app: App, answer: Any) -> None:
    await app.settled(answer.aclose() if app.is_async else answer.close())


async def lived(app: App) -> None:
    """A gateway's whole run; one that cannot begin; one that serves."""

    @contextlib.asynccontextmanager
    async def whole(_: Starlette) -> AsyncIterator[None]:
        app.say("begins")
        yield
        app.say("ends")

    @contextlib.asynccontextmanager
    async def failing(_: Starlette) -> AsyncIterator[None]:
        raise UserError("not ready")
        yield

    async def answer(_: Request) -> Response:
        return Response(b"answer")

    await _live(app, Starlette(lifespan=whole))
    await app.trial(_live, app, Starlette(lifespan=failing))
    await _serve(app, answer)


async def forwarded_whole(app: App) -> None:
    client = _client(app, net.whole(net.COMPLETION), net.whole({"error": "no"}, 503))

    async def forward(request: Request) -> Response:
        for _ in range(2):
            asked = await _asked(client, request)
            answer = await app.settled(client.send(asked))
            app.say(answer, answer.status_code, answer.text, answer.is_closed)
        return Response(answer.content, answer.status_code)

    await _serve(app, forward)


async def forwarded_stream(app: App) -> None:
    client = _client(app, net.streamed(*net.CHUNKS), net.whole(net.COMPLETION))

    async def forward(request: Request) -> Response:
        answer = await app.settled(client.send(await _asked(client, request), stream=True))
        body = b"".join([part async for part in _parts(app, answer)])
        again = await app.settled(client.send(answer.request))
        app.say(answer.is_closed, again.status_code)
        return Response(body, answer.status_code)

    await _serve(app, forward)


async def relayed_stream(app: App) -> None:
    if not app.is_async:
        return
    client = _client(app, net.streamed(*net.CHUNKS))

    async def forward(request: Request) -> Response:
        answer = await app.settled(client.send(await _asked(client, request), stream=True))
        return StreamingResponse(_parts(app, answer), answer.status_code)

    await _serve(app, forward)


async def given_up(app: App) -> None:
    answers = [net.streamed(*net.CHUNKS) for _ in range(3)]
    client = _client(app, *answers, httpcore2.ConnectError("refused"))

    async def forward(request: Request) -> Response:
        async def sent(host: str = "model") -> Any:
            asked = await _asked(client, request, host)
            return await app.settled(client.send(asked, stream=True))

        answer = await sent()
        app.say(await anext(_parts(app, answer)))
        await _closed(app, answer)
        app.say(answer.is_closed)
        answer = await sent("unread")
        await _closed(app, answer)
        answer = await sent("dropped")
        del answer
        gc.collect()
        await app.trial(sent, "refused")
        return Response(b"no", 502)

    await _serve(app, forward)


async def broken_off(app: App) -> None:
    client = _client(app, net.streamed(*net.CHUNKS[:3], httpcore2.ReadError("gone")))

    async def forward(request: Request) -> Response:
        answer = await app.settled(client.send(await _asked(client, request), stream=True))

        async def read() -> list[bytes]:
            return [part async for part in _parts(app, answer)]

        await app.trial(read)
        return Response(b"no", 502)

    await _serve(app, forward)


async def own_requests(app: App) -> None:
    client = _client(app, *[net.whole({"ok": True}) for _ in range(2)])

    async def forward(request: Request) -> Response:
        answer = await app.settled(client.post("http://audit/log", content=b"x"))
        app.say(answer.status_code, dict(answer.request.headers).keys())
        with app.llmlat.agent("own"):
            answer = await app.settled(client.post(f"http://model{PATH}", content=b"x"))
        return Response(answer.content)

    await _serve(app, forward)


# aiohttp, which has no network in memory


@cache
def _served() -> net.Served:
    return net.Served()


async def forwarded_by_aiohttp(app: App) -> None:
    if not app.is_async:
        return
    stream = net.streamed(*net.CHUNKS)
    place = _served().url_of(net.whole(net.COMPLETION), stream, stream[:-1])

    async def forward(request: Request) -> Response:
        url = f"{place}/chat/completions"
        async with aiohttp.ClientSession(headers={"traceparent": CALLER}) as session:
            async with session.post(url, data=b"x") as answer:
                app.say(answer.status, await answer.text(), answer.closed)
            async with session.post(url, data=b"x") as answer:
                body = b"".join([part async for part in answer.content.iter_any()])

            async def cut_off() -> bytes:
                async with session.post(url, data=b"x") as answer:
                    return await answer.read()

            await app.trial(cut_off)
        await asyncio.sleep(0)
        return Response(body)

    await _serve(app, forward)


PROGRAMS: Final = programs(vars())
