"""A gateway of a page: it lets callers in, chooses a model server and passes its answer on.

`import llmlat_otel.auto` is its instrumentation. It finds FastAPI and httpx, and times what this
gateway adds to each request: admission, route, its call upstream, and the relay of the answer.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

import llmlat_otel.auto  # noqa: F401  (this is all that llmlat-otel asks of a gateway)

__all__ = ["app", "main"]

SERVERS = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1").split(",")
"""The model servers, one or several with a comma between them."""

OF_ONE_HOP = frozenset(
    ("connection", "content-length", "date", "host", "keep-alive", "server", "transfer-encoding")
)
"""Headers that each hop writes for itself."""

under_way: Counter[str] = Counter()
"""Requests that each server has not answered to the end."""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for all requests."""
    async with httpx.AsyncClient(timeout=None) as client:
        app.state.client = client
        yield


def admit(authorization: Annotated[str, Header()] = "") -> None:
    """Let in whoever has a key; the place for limits and policies too."""
    if not authorization.startswith("Bearer "):
        raise HTTPException(401, "send an API key: Authorization: Bearer ...")


app = FastAPI(lifespan=lifespan)


@app.post("/v1/chat/completions", dependencies=[Depends(admit)])
async def chat(request: Request) -> StreamingResponse:
    """Pass the request on, and its answer back as it comes."""
    server = min(SERVERS, key=lambda each: under_way[each])
    client: httpx.AsyncClient = app.state.client
    upstream = client.build_request(
        "POST",
        f"{server}/chat/completions",
        content=await request.body(),
        headers=passed_on(request.headers),
    )
    response = await client.send(upstream, stream=True)
    under_way[server] += 1

    async def over() -> None:
        under_way[server] -= 1
        await response.aclose()

    return StreamingResponse(
        response.aiter_raw(),
        status_code=response.status_code,
        headers=passed_on(response.headers),
        background=BackgroundTask(over),
    )


def passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    """All headers but those of one hop."""
    return {name: value for name, value in headers.items() if name.lower() not in OF_ONE_HOP}


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
