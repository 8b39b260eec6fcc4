"""Reference programs: engines in this process, and the client of one; models are left out."""

from __future__ import annotations

import gc
import json
import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import httpx
import ollama
from fastapi import FastAPI, Response
from opentelemetry import trace

from tests.integration.seams.app import App, UserError, programs
from tests.integration.seams.gateways import CALLER
from tests.llmlat_otel.instrumentors import fake_transformers
from tests.llmlat_otel.instrumentors.fake_transformers import Ids, Llama, Streamer, stops_after
from tests.llmlat_otel.instrumentors.fake_vllm import ASYNC_LLM, library, request_of
from tests.llmlat_otel.instrumentors.fake_vllm_core import SHAPES, FinishReason, RequestStatus
from tests.llmlat_otel.instrumentors.vllm_engine import Engine

PATH: Final = "/v1/chat/completions"
OLLAMA: Final = "http://127.0.0.1:11434"

# There for as long as the process is: each run of the SDK wraps them, and puts them back.
SHAPE: Final = SHAPES["0.32.0"]
VLLM: Final = library(SHAPE)
del VLLM["fastapi.applications"]  # The real one.
sys.modules.update(VLLM)
_INSTALLED: Final = ExitStack()
_INSTALLED.enter_context(fake_transformers.installed())


class _Clock:
    """Time passes by itself."""

    now_ns = staticmethod(time.monotonic_ns)

    def advance(self, duration_ns: int) -> None:
        """Nothing waits for it."""


CLOCK: Any = _Clock()


def _native(output: Any) -> None:
    """The span that vLLM makes itself."""
    tracer = trace.get_tracer_provider().get_tracer("vllm")
    with tracer.start_as_current_span("llm_request") as span:
        span.set_attribute("request", output.request_id)


def _engine(app: App, shape: Any = SHAPE, **more: Any) -> Engine:
    modules = VLLM if shape is SHAPE else library(shape)
    return Engine(modules, shape, CLOCK, **more)


async def vllm_requests(app: App) -> None:
    """Requests that are answered, evicted, given up; with a cache from elsewhere."""
    engine = _engine(app)
    engine.scheduler.connector = object()
    with app.llmlat.agent("adviser"):
        for name in "abcd":
            engine.add(name, range(6))
    engine.add("e", headers={"traceparent": CALLER})
    engine.scheduler.requests["d"].status = RequestStatus.WAITING_FOR_REMOTE_KVS
    engine.step({"a": 4, "b": 4}, {})
    engine.scheduler.requests["d"].status = RequestStatus.WAITING
    engine.step({"a": 2, "b": 2})
    app.say(engine.abort("b"), engine.abort("nobody"))
    engine.step({"c": 6, "d": 6}, evicted=["a"])
    engine.step({"a": 7, "e": 6, "c": 1}, c=FinishReason.abort, e=FinishReason.error)
    engine.step({"a": 1, "d": 1}, a=FinishReason.stop, d=FinishReason.length)
    app.say([list(map(str, each)) for each in engine.told], sorted(engine.scheduler.requests))


async def vllm_with_a_span_of_its_own(app: App) -> None:
    engine = _engine(app, trace=_native)
    for name in "ab":
        engine.add(name)
    engine.step({"a": 4, "b": 4})
    engine.step({"a": 1, "b": 1}, a=FinishReason.stop)
    app.say(engine.abort("b"), len(engine.told))


async def vllm_that_dies(app: App) -> None:
    engine, queue = _engine(app), []  # type: ignore[var-annotated]
    engine.add("a", [1])
    engine.outputs.request_states["a"].queue = queue
    engine.step({"a": 1})
    engine.outputs.propagate_error(UserError("dead"))
    app.say(queue, len(engine.told))
    engine.outputs.request_states = None
    await app.trial(engine.add, "b")


async def vllm_served(app: App) -> None:
    """The server, as far as it is ours to see: a request comes, and is handed on to the engine."""
    engine = _engine(app)
    api: Any = VLLM[ASYNC_LLM].AsyncLLM()
    engine.outputs, api.core = api.output_processor, engine._to_core
    server = FastAPI()

    @server.post(PATH)
    async def answer() -> Response:
        await api.add_request(request_of(SHAPE, "a"))
        engine.step({"a": 4}, a=FinishReason.stop)
        return Response(json.dumps(engine.told[-1][0]))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        app.say(message["type"], message.get("status"), str(message.get("body")))

    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": PATH,
        "query_string": b"",
        "headers": [(b"traceparent", CALLER.encode())],
    }
    await server(scope, receive, send)


# Transformers


def _width(ids: Ids) -> tuple[int, int]:
    return ids.shape


async def generations(app: App) -> None:
    for is_old in (False, True):
        model = Llama(CLOCK, (3, 4), is_old=is_old)
        app.say(_width(model.generate(Ids(2, 5))))
        app.say(_width(model.generate(Ids(1, 5), streamer=Streamer(CLOCK))))
        await app.trial(model.generate, Ids(1, 5), streamer=Streamer(CLOCK, 1))
        stop = stops_after(1, UserError("enough"))
        await app.trial(model.generate, Ids(1, 5), stopping_criteria=stop)
        app.say(_width(model.generate(Ids(1, 5, "cuda"), handed_on=True)))
        drafts = {"assistant_model": Llama(CLOCK), "drafts": (2, 1)}
        app.say(_width(model.generate(Ids(1, 5), loop="_assisted_decoding", **drafts)))
        app.say(_width(model.generate(Ids(1, 5), loop="_beam_search")))


# ollama

CHUNK: Final = {"model": "m", "message": {"role": "assistant", "content": "a"}, "done": False}
LAST: Final = {
    **CHUNK,
    "done": True,
    "done_reason": "stop",
    "total_duration": 9_000_000,
    "load_duration": 1_000_000,
    "prompt_eval_count": 3,
    "prompt_eval_duration": 2_000_000,
    "eval_count": 2,
    "eval_duration": 3_000_000,
}


def _reply(request: httpx.Request) -> httpx.Response:
    asked = json.loads(request.content)
    if request.url.path == "/api/embed":
        return httpx.Response(200, json={"model": "m", "embeddings": [[0.5]]})
    if asked["model"] == "none":
        return httpx.Response(404, json={"error": "no such model"})
    if not asked.get("stream"):
        return httpx.Response(200, json={**LAST, "response": "a"})
    lines = [json.dumps({**each, "response": "a"}) for each in (CHUNK, CHUNK, LAST)]
    return httpx.Response(200, content="\n".join(lines).encode())


def _client(app: App) -> Any:
    make = ollama.AsyncClient if app.is_async else ollama.Client
    return make(OLLAMA, transport=httpx.MockTransport(_reply))


async def ollama_whole(app: App) -> None:
    client = _client(app)
    asked = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    app.say(await app.settled(client.chat(**asked)))
    app.say(await app.settled(client.generate("m", "q")))
    app.say(await app.settled(client.embed("m", "q")))
    await app.trial(client.generate, "none", "q")


async def ollama_streams(app: App) -> None:
    client = _client(app)
    for end in ("read", "close", "drop", "fail"):
        name = "none" if end == "fail" else "m"
        stream = await app.settled(client.generate(name, "q", stream=True))
        if end in {"read", "fail"}:
            await app.trial(partial(_all_of, app, stream))
        elif end == "close":
            app.say(await app.step(stream))
            await app.settled(stream.aclose() if app.is_async else stream.close())
        del stream
        gc.collect()


async def _all_of(app: App, stream: Any) -> list[Any]:
    return [each async for each in stream] if app.is_async else list(stream)


PROGRAMS: Final = programs(vars())
