"""Reference programs: the other APIs of the client, other transports, and what servers add."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import aiohttp
import httpx2
import openai
import pydantic

from llmlat_semconv.phases import Phase, duration_attribute
from tests.integration.seams import network as net
from tests.integration.seams.app import ASK, DONE, STREAM, App, programs

RESPONSE: Final[dict[str, Any]] = {
    "id": "r-1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "m-2",
    "output": [
        {
            "type": "message",
            "id": "o-1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": '{"a": 1}', "annotations": []}],
        }
    ],
    "usage": {
        "input_tokens": 3,
        "output_tokens": 2,
        "total_tokens": 5,
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens_details": {"reasoning_tokens": 1},
    },
}
_CALL = {"type": "function_call", "id": "o-2", "call_id": "call-1", "name": "f", "arguments": ""}
_EVENTS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 1, "item": _CALL},
    {
        "type": "response.function_call_arguments.done",
        "output_index": 1,
        "item_id": "o-2",
        "name": "f",
        "arguments": "{}",
    },
    {
        "type": "response.output_text.delta",
        "output_index": 0,
        "content_index": 0,
        "item_id": "o-1",
        "delta": "{",
        "logprobs": [],
    },
    {"type": "response.output_item.done", "output_index": 1, "item": _CALL},
    {"type": "response.completed", "response": RESPONSE},
)
EVENTS: Final = tuple({"sequence_number": at, **event} for at, event in enumerate(_EVENTS))
COMPLETION: Final = {
    **net.MODEL,
    "object": "text_completion",
    "choices": [{"index": 0, "text": "ab", "finish_reason": "stop", "logprobs": None}],
    "usage": net.USAGE,
}
EMBEDDINGS: Final = {
    "object": "list",
    "model": "m-2",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}],
    "usage": {"prompt_tokens": 3, "total_tokens": 3},
}
SAID_IN_HEADERS: Final[dict[str, Any]] = {
    "openai-processing-ms": "12",
    "server-timing": f"{duration_attribute(Phase.QUEUE).removesuffix('.duration')};dur=1.5, db",
    "x-envoy-upstream-service-time": "20",
    "x-kong-proxy-latency": "2",
    "x-compute-type": "gpu",
    "x-queue-time": "4",
    "x-total-time": "30",
}
VLLM: Final = {"queue_time_ms": 1.0, "time_to_first_token_ms": 2.0, "generation_time_ms": 3.0}


class Answer(pydantic.BaseModel):
    """What is asked for in JSON."""

    a: int


async def responses(app: App) -> None:
    client = app.client(net.whole(RESPONSE, **SAID_IN_HEADERS), net.streamed(*EVENTS, kind="event"))
    app.say(await app.settled(client.responses.create(model="m", input="q")))
    stream = await app.settled(client.responses.create(model="m", input="q", stream=True))
    await app.read(stream)


async def responses_helper(app: App) -> None:
    client = app.client(net.streamed(*EVENTS, kind="event"))
    async with app.within(client.responses.stream(model="m", input="q")) as stream:
        app.say(await app.step(stream), await app.step(stream))


async def responses_retrieved(app: App) -> None:
    client = app.client(net.whole(RESPONSE), net.streamed(*EVENTS, kind="event"))
    app.say(await app.settled(client.responses.retrieve("r-1")))
    await app.read(await app.settled(client.responses.retrieve("r-1", stream=True)))


async def parsed(app: App) -> None:
    choice = {
        **net.COMPLETION["choices"][0],
        "message": {"role": "assistant", "content": '{"a":1}'},
    }
    completion = {**net.COMPLETION, "choices": [choice], "metrics": VLLM}
    client = app.client(net.whole(RESPONSE), net.whole(completion))
    app.say(await app.settled(client.responses.parse(model="m", input="q", text_format=Answer)))
    app.say(await app.settled(client.chat.completions.parse(**ASK, response_format=Answer)))


async def completions(app: App) -> None:
    client = app.client(net.whole(COMPLETION), net.streamed(COMPLETION, COMPLETION))
    app.say(await app.settled(client.completions.create(model="m", prompt="q")))
    await app.read(await app.settled(client.completions.create(model="m", prompt="q", stream=True)))


async def embeddings(app: App) -> None:
    client = app.client(net.whole(EMBEDDINGS))
    create = client.embeddings.create(model="m", input="q", encoding_format="float")
    app.say(await app.settled(create))


async def odd_answers(app: App) -> None:
    """Servers that others have written send what the API does not have."""
    chunks = (
        {**net.MODEL, "object": "chat.completion.chunk"},
        net.chunk({"content": 5, "tool_calls": [{"index": None}]}, usage="none"),
        {**net.chunk({}), "choices": [{"index": 0}, {}], "timings": [1], "prompt_progress": 1},
    )
    client = app.client(net.streamed(*chunks), net.whole({"choices": None, "usage": 3}))
    await app.read(await app.settled(client.chat.completions.create(**STREAM)))
    app.say(await app.settled(client.chat.completions.create(**ASK)))


# aiohttp, which has no network in memory


@cache
def _served() -> net.Served:
    return net.Served()


async def over_aiohttp(app: App) -> None:
    if not app.is_async:
        return
    url = _served().url_of(net.whole(net.COMPLETION), net.streamed(*net.CHUNKS))
    async with openai.DefaultAioHttpClient(verify=net.NO_TLS) as http_client:
        client = openai.AsyncOpenAI(base_url=url, api_key="k", http_client=http_client)
        app.say(await client.chat.completions.create(**ASK))
        await app.read(await client.chat.completions.create(**STREAM))


class _Aiohttp(httpx2.AsyncClient):
    """Sends by aiohttp alone."""

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        async with (
            aiohttp.ClientSession() as session,
            session.post(str(request.url), data=request.content) as answer,
        ):
            return httpx2.Response(
                answer.status,
                headers={"content-type": answer.headers["content-type"]},
                content=b"".join([part async for part in answer.content.iter_any()]),
                request=request,
            )


async def by_aiohttp_itself(app: App) -> None:
    if not app.is_async:
        return
    url = _served().url_of(net.whole(net.COMPLETION))
    async with _Aiohttp() as http_client:
        client = openai.AsyncOpenAI(base_url=url, api_key="k", http_client=http_client)
        app.say(await client.chat.completions.create(**ASK), DONE)


PROGRAMS: Final = programs(vars())
