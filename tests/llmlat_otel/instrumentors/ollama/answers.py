"""Ollama as its own client sees it, over a transport of the test's own."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any

import httpx

from llmlat_otel.testing import MS

PLACE = "http://127.0.0.1:11434"
ASK: dict[str, Any] = {
    "model": "llama3.2",
    "messages": [{"role": "user", "content": "why is the sky blue?"}],
}
CUT = object()

# docs/api.md: the last chunk of /api/chat and /api/generate, and /api/embed
LAST = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 4883583458,
    "load_duration": 1334875,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 342546000,
    "eval_count": 282,
    "eval_duration": 4535599000,
}
EMBEDDED = {
    "model": "all-minilm",
    "embeddings": [[0.010071029, -0.0017594862]],
    "total_duration": 14143917,
    "load_duration": 1019500,
    "prompt_eval_count": 8,
}


def said(**message):
    made = {"model": "llama3.2", "created_at": "2023-08-04T08:52:19.385406455-07:00"}
    return {**made, "message": {"role": "assistant", "content": "", **message}, "done": False}


TOOL = {"function": {"name": "get_weather", "arguments": {"city": "Tokyo"}}}
STREAM = (said(content="The"), said(content=" sky"), {**said(), **LAST})


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Chunks that take their time."""

    def __init__(self, chunks, clock):
        self._chunks = chunks
        self._clock = clock
        self.closed_count = 0

    def _lines(self):
        for each in self._chunks:
            self._clock.advance(10 * MS)
            if each is CUT:
                raise httpx.ReadError("cut")
            yield json.dumps(each).encode() + b"\n"

    def __iter__(self):
        yield from self._lines()

    async def __aiter__(self):
        for each in self._lines():
            await asyncio.sleep(0)
            yield each

    def close(self):
        self.closed_count += 1

    async def aclose(self):
        self.closed_count += 1


class Server:
    """Answers every request alike, some time after it came."""

    def __init__(self, clock):
        self._clock = clock
        self.chunks = STREAM
        self.whole = {**said(content="The sky"), **LAST}
        self.status = 200
        self.error = None
        self.requests = []
        self.bodies = []

    def answer(self, request):
        self.requests.append(request)
        self._clock.advance(50 * MS)
        if self.error is not None:
            raise self.error
        if self.status != 200:
            return httpx.Response(self.status, json={"error": "model 'm' not found"})
        if request.method == "GET":
            return httpx.Response(200, json={"models": []})
        if not json.loads(request.content).get("stream"):
            return httpx.Response(200, json=self.whole)
        body = Body(self.chunks, self._clock)
        self.bodies.append(body)
        return httpx.Response(200, stream=body)


def the_span(record, name="chat llama3.2"):
    (span,) = [each for each in record.spans if not each.name.startswith("phase")]
    assert span.name == name
    return span


def all_of(client, **more):
    result = client.chat(**ASK, **more)
    if not inspect.isawaitable(result):
        return list(result) if more.get("stream") else result

    async def awaited():
        made = await result
        return [each async for each in made] if more.get("stream") else made

    return asyncio.run(awaited())
