"""The rest of openai's API on the same server, and each of its entry points; any version of it.

As a program it makes every call that its openai has, and prints what became of each: run it with
the folder of another version first on PYTHONPATH.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from http.server import BaseHTTPRequestHandler
from typing import Any

import openai
from pydantic import BaseModel

import llmlat_otel
from llmlat_otel.core.clock import Clock
from llmlat_otel.core.guard import faults
from llmlat_otel.settings import Settings
from llmlat_otel.testing import Recorded, recorded
from llmlat_semconv import attributes as names
from tests.integration.sdk.openai_server import MODEL, RESPONSE_STREAM, USAGE, Handler, Server
from tests.integration.serving import serving

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
EMBEDDING = {"object": "embedding", "index": 0, "embedding": [0.5]}
WANTED = (
    names.GEN_AI_RESPONSE_MODEL,
    names.GEN_AI_RESPONSE_FINISH_REASONS,
    names.GEN_AI_USAGE_INPUT_TOKENS,
    names.GEN_AI_USAGE_OUTPUT_TOKENS,
    names.LLMLAT_STREAM_END,
    names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND,
)


class Surface(Handler, BaseHTTPRequestHandler):
    """Answers what chat and responses are not, and sends headers of its own.

    Attributes:
        said: Headers that go with each answer.
    """

    said: tuple[tuple[str, str], ...] = ()

    def do_GET(self) -> None:
        self.server.requests.append(({}, {"path": self.path}))
        if "stream=true" in self.path:
            self._stream(RESPONSE_STREAM, None)
        else:
            self._whole(200, RESPONSE_STREAM[-1]["response"])

    def do_POST(self) -> None:
        self.path = self.path.partition("?")[0]
        if self.path.endswith("/embeddings"):
            self._answer({"object": "list", "model": "m-2", "data": [EMBEDDING]})
        elif self.path.endswith("/v1/completions"):
            self._complete()
        else:
            super().do_POST()

    def _complete(self) -> None:
        choice = {"index": 0, "text": "ab", "finish_reason": "stop", "logprobs": None}
        said = {**MODEL, "object": "text_completion", "choices": [choice]}
        self._answer(said, {**said, "choices": [{**choice, "finish_reason": None}]}, said)

    def _answer(self, whole: dict[str, Any], *streamed: dict[str, Any]) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append((dict(self.headers), body))
        if body.get("stream"):
            self._stream((*streamed, {**whole, "choices": [], "usage": USAGE}), "[DONE]")
        else:
            self._whole(200, {**whole, "usage": USAGE})

    def end_headers(self) -> None:
        for name, value in self.said:
            self.send_header(name, value)
        super().end_headers()


class Answer(BaseModel):
    """What is parsed."""


def read_all(stream: Any) -> None:
    for _ in stream:
        pass


def read_helper(manager: Any) -> None:
    with manager as stream:
        read_all(stream)


async def read_all_async(stream: Any) -> None:
    async for _ in await stream:
        pass


async def read_helper_async(manager: Any) -> None:
    async with manager as stream:
        async for _ in stream:
            pass


def chat_api(client: Any) -> Any:
    """Where `parse` and `stream` are: they were in beta before."""
    has_them = hasattr(client.chat.completions, "parse")
    return client.chat.completions if has_them else client.beta.chat.completions


Call = Callable[[Any], Any]
AsyncCall = Callable[[Any], Coroutine[Any, Any, Any]]

CHAT: dict[str, tuple[Call, AsyncCall]] = {
    "chat.create": (
        lambda client: client.chat.completions.create(**ASK),
        lambda client: client.chat.completions.create(**ASK),
    ),
    "chat.create streamed": (
        lambda client: read_all(client.chat.completions.create(**ASK, stream=True)),
        lambda client: read_all_async(client.chat.completions.create(**ASK, stream=True)),
    ),
    "chat.parse": (
        lambda client: chat_api(client).parse(**ASK),
        lambda client: chat_api(client).parse(**ASK),
    ),
    "chat.stream": (
        lambda client: read_helper(chat_api(client).stream(**ASK)),
        lambda client: read_helper_async(chat_api(client).stream(**ASK)),
    ),
    "completions.create": (
        lambda client: client.completions.create(model="m", prompt="q"),
        lambda client: client.completions.create(model="m", prompt="q"),
    ),
    "completions.create streamed": (
        lambda client: read_all(client.completions.create(model="m", prompt="q", stream=True)),
        lambda client: read_all_async(
            client.completions.create(model="m", prompt="q", stream=True)
        ),
    ),
    "embeddings.create": (
        lambda client: client.embeddings.create(model="m", input="q"),
        lambda client: client.embeddings.create(model="m", input="q"),
    ),
}
RESPONSES: dict[str, tuple[Call, AsyncCall]] = {
    "responses.create": (
        lambda client: client.responses.create(model="m", input="q"),
        lambda client: client.responses.create(model="m", input="q"),
    ),
    "responses.create streamed": (
        lambda client: read_all(client.responses.create(model="m", input="q", stream=True)),
        lambda client: read_all_async(client.responses.create(model="m", input="q", stream=True)),
    ),
    "responses.parse": (
        lambda client: client.responses.parse(model="m", input="q"),
        lambda client: client.responses.parse(model="m", input="q"),
    ),
    "responses.stream": (
        lambda client: read_helper(client.responses.stream(model="m", input="q")),
        lambda client: read_helper_async(client.responses.stream(model="m", input="q")),
    ),
    "responses.retrieve streamed": (
        lambda client: read_all(client.responses.retrieve("r-1", stream=True)),
        lambda client: read_all_async(client.responses.retrieve("r-1", stream=True)),
    ),
    "responses.stream of one that is there": (
        lambda client: read_helper(client.responses.stream(response_id="r-1")),
        lambda client: read_helper_async(client.responses.stream(response_id="r-1")),
    ),
}
BETA_RESPONSES: dict[str, tuple[Call, AsyncCall]] = {
    "beta.responses.create": (
        lambda client: client.beta.responses.create(model="m", input="q"),
        lambda client: client.beta.responses.create(model="m", input="q"),
    ),
    "beta.responses.retrieve streamed": (
        lambda client: read_all(client.beta.responses.retrieve("r-1", stream=True)),
        lambda client: read_all_async(client.beta.responses.retrieve("r-1", stream=True)),
    ),
}


def outcome(record: Recorded, requests: int) -> dict[str, Any]:
    """What there is of one call, in values that JSON has."""
    spans = [each for each in record.spans if not each.name.startswith("phase")]
    found = {
        name: value
        for each in spans
        for name, value in (each.attributes or {}).items()
        if name in WANTED
    }
    listed = {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}
    return {"spans": [each.name for each in spans], "requests": requests, **listed}


def called(server: Server, call: Call, **options: Any) -> dict[str, Any]:
    before = len(server.requests)
    with (
        recorded(clock=Clock(), settings=Settings(phase_min_ns=0)) as record,
        openai.OpenAI(base_url=server.url, api_key="k", **options) as client,
    ):
        call(client)
        return outcome(record, len(server.requests) - before)


def called_async(server: Server, call: AsyncCall) -> dict[str, Any]:
    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="k") as client:
            await call(client)

    before = len(server.requests)
    with recorded(clock=Clock(), settings=Settings(phase_min_ns=0)) as record:
        asyncio.run(main())
        return outcome(record, len(server.requests) - before)


def main() -> None:
    """Make the calls that any version has."""
    llmlat_otel.instrument()
    server = Server()
    with serving(server):
        server.RequestHandlerClass = Surface
        found = {
            kind: [called(server, sync), called_async(server, asynchronous)]
            for kind, (sync, asynchronous) in CHAT.items()
        }
    json.dump({"version": openai.__version__, "found": found, "faults": dict(faults())}, sys.stdout)


if __name__ == "__main__":
    main()
