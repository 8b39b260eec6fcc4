"""An OpenAI-compatible model server without a model, with an engine's queue and batch.

It stands in for llama.cpp in the demo: it reports ``timings`` in the last chunk and, when the
request asks for ``return_progress``, ``prompt_progress`` from the moment the request is admitted,
so that a client sees the same evidence from both.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from batch_loop import BatchLoop, Clock, SystemClock
from chat_wire import MODEL, BadRequestError, Order, Timings, Writer, read_order
from scheduler import Costs, Limits, Scheduler

__all__ = ["EmulatedEngine", "main"]

LIMITS = Limits(running=2, step_tokens=64)
COSTS = Costs(step_ns=8_000_000, prefill_token_ns=1_500_000, decode_token_ns=5_000_000)


class EmulatedEngine:
    """The server's routes around one batch loop."""

    def __init__(self, limits: Limits, costs: Costs, clock: Clock) -> None:
        self._loop = BatchLoop(Scheduler(limits, costs), clock)
        self._reply_ids = itertools.count(1)
        self.app = Starlette(
            routes=[
                Route("/health", self._health),
                Route("/v1/models", self._models),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
            ],
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        serving = asyncio.create_task(self._loop.run())
        yield
        serving.cancel()

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _models(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def _chat(self, request: Request) -> Response:
        try:
            order = read_order(await request.json())
        except (BadRequestError, json.JSONDecodeError) as bad:
            return _refusal(bad)
        writer = Writer(order, str(next(self._reply_ids)), int(time.time()))
        if order.stream:
            return StreamingResponse(self._stream(order, writer), media_type="text/event-stream")
        timings = Timings()
        async for tick in self._loop.follow(order.prompt_tokens, len(order.pieces)):
            timings.note(tick)
        return JSONResponse(writer.completion(timings))

    async def _stream(self, order: Order, writer: Writer) -> AsyncIterator[str]:
        timings = Timings()
        async for tick in self._loop.follow(order.prompt_tokens, len(order.pieces)):
            timings.note(tick)
            if order.return_progress and tick.sampled <= 1:
                yield _event(writer.progress(tick, timings))
            if tick.sampled == 1:
                yield _event(writer.role())
            if tick.sampled:
                yield _event(writer.piece(tick.sampled - 1))
        for chunk in writer.last(timings):
            yield _event(chunk)
        yield "data: [DONE]\n\n"


def _refusal(reason: Exception) -> Response:
    error = {"code": 400, "message": str(reason), "type": "invalid_request_error"}
    return JSONResponse({"error": error}, status_code=400)


def _event(chunk: dict[str, object]) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def main() -> None:
    """Serve on loopback and print the address as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    arguments = parser.parse_args()
    with socket.create_server(("127.0.0.1", arguments.port)) as listener:
        url = "http://{}:{}".format(*listener.getsockname())
        print(json.dumps({"url": url, "model": MODEL}), flush=True)
        engine = EmulatedEngine(LIMITS, COSTS, SystemClock())
        config = uvicorn.Config(engine.app, log_level="warning", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
