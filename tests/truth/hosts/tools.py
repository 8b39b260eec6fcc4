"""A host of tools: each waits as long as it is told to, and says how long it did."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.truth.hosts.record import Record, wait
from tests.truth.hosts.variables import PLAIN_TOOLS
from tests.truth.marks import LAST, mark, request_in

_record = Record.of_this_host()


def _instrumented() -> tuple[Callable[[str], AbstractContextManager[Any]], Callable[..., Any]]:
    """How a tool's run is timed, and what becomes of the application."""
    if os.environ.get(PLAIN_TOOLS):
        from tests.truth.hosts.plain import PlainServer, plain_tool

        return plain_tool, PlainServer
    import llmlat_otel.auto  # noqa: F401
    from llmlat_otel import tool

    return tool, lambda application: application


_tool, _served = _instrumented()


async def _run(request: Request) -> PlainTextResponse:
    number = request_in((await request.body()).decode())
    name = request.path_params["name"]
    with _tool(name):
        waited_ns = await wait(float(request.query_params["ms"]))
    _record.waited(number, "tool", waited_ns)
    return PlainTextResponse(mark(number, LAST))


app = _served(Starlette(routes=[Route("/tools/{name}", _run, methods=["POST"])]))
