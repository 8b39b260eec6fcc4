"""A program: another instrumentation beside ours, in one order, and what came of each call.

    python cells.py PEER ORDER PEER ORDER ...

Peers do not all clean up behind themselves, so each pair has a process of its own; it is forked,
since importing them takes longer than all the rest. What came of it is printed as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import openai
from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference
from opentelemetry import metrics, trace
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as GenAI
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor
from opentelemetry.instrumentation.openai import OpenAIInstrumentor as OpenLLMetry
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import llmlat_otel
from llmlat_otel.core.guard import faults
from tests.integration.coexistence.upstream import Upstream
from tests.integration.serving import serving

PEERS: Final[dict[str, Callable[[], Any]]] = {
    "genai": GenAI,
    "openinference": OpenInference,
    "openllmetry": OpenLLMetry,
    "httpx": HTTPX2ClientInstrumentor,
}
ORDERS: Final = ("first", "last")
"""Whether ours is the first or the last."""

CHAT: Final[dict[str, Any]] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
RESPONSE: Final[dict[str, Any]] = {"model": "m", "input": "q"}


async def settled(result: Any) -> Any:
    """What came back, whichever kind of client it came from."""
    return await result if hasattr(result, "__await__") else result


async def events(stream: Any) -> Any:
    """The events of a stream of either kind."""
    if isinstance(stream, openai.AsyncStream):
        async for event in stream:
            yield event
    else:
        for event in stream:
            yield event


async def read(stream: Any) -> int:
    return len([event async for event in events(stream)])


async def chat(client: Any) -> Any:
    completion = await settled(client.chat.completions.create(**CHAT))
    return completion.choices[0].message.content


async def chat_stream(client: Any) -> Any:
    return await read(await settled(client.chat.completions.create(**CHAT, stream=True)))


async def response(client: Any) -> Any:
    return (await settled(client.responses.create(**RESPONSE))).output_text


async def response_stream(client: Any) -> Any:
    return await read(await settled(client.responses.create(**RESPONSE, stream=True)))


async def embeddings(client: Any) -> Any:
    made = await settled(client.embeddings.create(model="m", input="q", encoding_format="float"))
    return made.data[0].embedding


async def close(client: Any) -> Any:
    stream = await settled(client.chat.completions.create(**CHAT, stream=True))
    async for event in events(stream):
        await settled(stream.close())
        return event.choices[0].delta.role
    return None


async def leave_the_block(client: Any) -> Any:
    stream = await settled(client.chat.completions.create(**CHAT, stream=True))
    if isinstance(stream, openai.AsyncStream):
        async with stream as entered:
            return (await anext(entered)).choices[0].delta.role
    with stream as entered:
        return next(entered).choices[0].delta.role


async def drop(client: Any) -> Any:
    stream = await settled(client.chat.completions.create(**CHAT, stream=True))
    first = await anext(stream) if isinstance(stream, openai.AsyncStream) else next(stream)
    return first.choices[0].delta.role


async def within(client: Any) -> Any:
    """A call in the middle of another one's stream."""
    stream = await settled(client.chat.completions.create(**CHAT, stream=True))
    return [await chat(client) async for event in events(stream) if not event.choices]


async def retry(client: Any) -> Any:
    return await chat(client)


WAYS: Final = (
    chat,
    chat_stream,
    response,
    response_stream,
    embeddings,
    close,
    leave_the_block,
    drop,
    within,
    retry,
)


class Warnings(logging.Handler):
    """What is logged above info."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")


def plain(span: ReadableSpan) -> dict[str, Any]:
    context = span.get_span_context()
    scope = span.instrumentation_scope
    assert context is not None
    assert scope is not None
    return {
        "name": span.name,
        "scope": scope.name,
        "kind": span.kind.name,
        "trace": f"{context.trace_id:032x}",
        "id": f"{context.span_id:016x}",
        "parent": None if span.parent is None else f"{span.parent.span_id:016x}",
        "attributes": dict(span.attributes or {}),
    }


class Cells:
    """Runs the cells of one pair."""

    def __init__(self, peer: str, order: str) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self._warnings = Warnings()
        logging.getLogger().addHandler(self._warnings)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        trace.set_tracer_provider(provider)
        metrics.set_meter_provider(MeterProvider([self._reader], shutdown_on_exit=False))
        installs = [llmlat_otel.instrument, PEERS[peer]().instrument]
        for install in installs if order == "first" else reversed(installs):
            install()
        self._upstream = Upstream()
        self._url = self._upstream.url
        threading.Thread(target=self._upstream.serve_forever, daemon=True).start()

    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for way in WAYS:
            found[f"{way.__name__} sync"] = self._cell(way, self._sync)
            found[f"{way.__name__} async"] = self._cell(way, self._async)
        found["metrics"] = self._metrics()
        llmlat_otel.uninstrument()
        found["uninstrumented"] = self._cell(chat_stream, self._sync)
        return found

    def _cell(self, way: Callable[[Any], Any], run: Callable[..., Any]) -> dict[str, Any]:
        self._exporter.clear()
        before = len(self._upstream.requests)
        self._upstream.statuses = [503] if way is retry else []
        self._warnings.lines.clear()
        result = run(way)
        gc.collect()
        return {
            "result": result,
            "spans": [plain(span) for span in self._exporter.get_finished_spans()],
            "upstream": [each.get("traceparent") for each in self._upstream.requests[before:]],
            "baggage": [each.get("baggage") for each in self._upstream.requests[before:]],
            "current": trace.get_current_span().get_span_context().is_valid,
            "warnings": list(self._warnings.lines),
            "faults": dict(faults()),
        }

    def _sync(self, way: Callable[[Any], Any]) -> Any:
        async def main() -> Any:
            http = openai.DefaultHttpxClient(verify=False)  # which takes long to prepare
            with openai.OpenAI(base_url=self._url, api_key="k", http_client=http) as client:
                return await way(client)

        return asyncio.run(main())

    def _async(self, way: Callable[[Any], Any]) -> Any:
        async def main() -> Any:
            http = openai.DefaultAsyncHttpxClient(verify=False)
            client = openai.AsyncOpenAI(base_url=self._url, api_key="k", http_client=http)
            async with client:
                return await way(client)

        return asyncio.run(main())

    def _metrics(self) -> list[str]:
        data = self._reader.get_metrics_data()
        assert data is not None
        scopes = [scope for each in data.resource_metrics for scope in each.scope_metrics]
        return sorted({metric.name for scope in scopes for metric in scope.metrics})


def run(peer: str, order: str) -> dict[str, Any]:
    """Every cell of a pair."""
    return Cells(peer, order).run()


def warm_up() -> None:
    """Have the library import and build what its first calls need, once for all processes."""
    upstream = Upstream()
    with serving(upstream):
        for way in (chat, chat_stream, response, response_stream, embeddings):
            with openai.OpenAI(base_url=upstream.url, api_key="k") as client:
                asyncio.run(way(client))


def forked(work: Callable[[], Any]) -> Callable[[], Any]:
    """Begin some work in a process of its own; what is returned waits for what it comes to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(writing)

    def outcome() -> Any:
        with os.fdopen(reading) as came:
            text = came.read()
        os.waitpid(child, 0)
        return json.loads(text)

    return outcome


def main(pairs: list[str]) -> None:
    warm_up()
    gc.freeze()  # A collection takes longer than a call, unless it leaves all these classes alone.
    begun = {
        f"{peer} {order}": forked(partial(run, peer, order))
        for peer, order in zip(pairs[::2], pairs[1::2], strict=True)
    }
    json.dump({pair: outcome() for pair, outcome in begun.items()}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
