"""Gateways on Starlette and FastAPI, and what was recorded of the requests that they answer."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import StreamingResponse
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Route

from llmlat_otel.testing import MS, ManualClock
from tests.llmlat_otel.asgi_driver import upstream


class Takes(BaseHTTPMiddleware):
    """A layer of the application's that takes its time."""

    def __init__(self, app: Any, clock: ManualClock, ms: int) -> None:
        super().__init__(app)
        self.clock, self.ms = clock, ms

    async def dispatch(self, request: Any, call_next: Any) -> Any:
        self.clock.advance(self.ms * MS)
        return await call_next(request)


def answering(clock):
    """An endpoint that asks a model 3 ms after it is entered, and passes on what comes."""

    async def parts():
        for _ in range(2):
            clock.advance(10 * MS)
            at_ns = clock.now_ns()
            upstream().upstream_event(at_ns)
            yield "x"
        upstream().upstream_ended(at_ns)

    async def endpoint(request: Any = None) -> Any:
        clock.advance(3 * MS)
        upstream().upstream_begins(clock.now_ns())
        return StreamingResponse(parts())

    return endpoint


def takes(clock, ms):
    async def dependency():
        clock.advance(ms * MS)

    return dependency


def phases(record):
    return {
        each["name"].removeprefix("phase "): (each["end_ns"] - each["start_ns"]) // MS
        for each in record.tree()
        if each["name"].startswith("phase")
    }


def servers(record):
    return [each for each in record.tree() if each["kind"] == "SERVER"]


def server(record):
    (span,) = servers(record)
    return span


def starlette(clock, **options):
    options.setdefault("routes", [Route("/chat/{model}", answering(clock))])
    return Starlette(**options)


def fastapi(clock, *dependencies, prefix=""):
    app, router = FastAPI(), APIRouter()
    endpoint = answering(clock)

    @router.get("/chat/{model}", dependencies=[Depends(each) for each in dependencies])
    async def chat(model: str) -> Any:
        return await endpoint()

    if prefix:
        app.include_router(router, prefix=prefix)
    else:
        app.router.routes.extend(router.routes)
    return app
