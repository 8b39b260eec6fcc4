"""A service that streams a model's answer, and goes on working when the answer has been given.

OpenTelemetry's FastAPI instrumentation makes the server span; the one import times the model's call
under it. Both use the tracer provider that is set here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import BackgroundTasks, FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import llmlat_otel.auto  # noqa: F401  (times the model's call)
from llmlat_otel import tool

__all__ = ["app", "main"]

filed: list[str] = []

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for all requests; at the end, what has not been exported yet is."""
    async with AsyncOpenAI() as client:
        app.state.client = client
        yield
    await asyncio.to_thread(provider.shutdown)


app = FastAPI(lifespan=lifespan)
# A span for each ASGI message would be one for each chunk of the answer.
FastAPIInstrumentor.instrument_app(app, exclude_spans=["receive", "send"])


@app.get("/answer")
async def answer(question: str, background: BackgroundTasks) -> StreamingResponse:
    """The answer, piece by piece; afterwards the question is filed."""
    background.add_task(file_question, question)
    return StreamingResponse(pieces(question), media_type="text/plain")


async def pieces(question: str) -> AsyncIterator[str]:
    """What the model says, as it says it; runs after `answer` has returned."""
    stream = await app.state.client.chat.completions.create(
        model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"),
        messages=[{"role": "user", "content": question}],
        max_completion_tokens=24,
        stream=True,
    )
    async for chunk in stream:
        for choice in chunk.choices:
            yield choice.delta.content or ""


@tool("file_question")
async def file_question(question: str) -> None:
    """Nobody waits for it: the visitor has the whole answer by then."""
    await asyncio.sleep(0.3)  # the way to a store and back
    filed.append(question)


def main() -> None:
    """Serve on loopback, and print the address as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    with socket.create_server(("127.0.0.1", parser.parse_args().port)) as listener:
        print(json.dumps({"url": "http://{}:{}".format(*listener.getsockname())}), flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
