"""A model server without a model: it waits where an engine works, and says how long it did."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from llmlat_semconv.phases import Phase
from tests.truth.hosts.record import Record, wait
from tests.truth.hosts.variables import ENGINE
from tests.truth.marks import FIRST, LAST, OUTPUT, mark, request_in
from tests.truth.scenarios import Engine

_engine = Engine(**json.loads(os.environ[ENGINE]))
_record = Record.of_this_host()


def _instrumented() -> tuple[Callable[[str], AbstractContextManager[Any]], Callable[..., Any]]:
    """How a phase is timed, and what becomes of the application."""
    if _engine.plain:
        from tests.truth.hosts.plain import PlainServer, plain_phase

        late_ns = round(_engine.late_ms * 1e6)
        decodes_late = partial(plain_phase, late_ns=late_ns)
        return (
            lambda name: (decodes_late if name == Phase.DECODE.value else plain_phase)(name),
            partial(PlainServer, late_ns=late_ns),
        )
    import llmlat_otel.auto  # noqa: F401
    from llmlat_otel import phase

    return phase, lambda application: application


_phase, _served = _instrumented()


async def _chat(request: Request) -> StreamingResponse:
    body = await request.json()
    number = request_in(body["messages"][-1]["content"])
    return StreamingResponse(_answer(number), media_type="text/event-stream")


async def _answer(request: int) -> AsyncIterator[str]:
    """Queue | prefill | first token, decode: a wait for each other token | over."""
    with _phase(Phase.QUEUE.value):
        _record.waited(request, Phase.QUEUE.value, await wait(_engine.queue_ms))
    with _phase(Phase.PREFILL.value):
        _record.waited(request, Phase.PREFILL.value, await wait(_engine.prefill_ms))
    begun_ns = time.monotonic_ns()
    with _phase(Phase.DECODE.value):
        yield _event(content=mark(request, FIRST))
        for number in range(2, _engine.tokens):
            await wait(_engine.token_ms)
            yield _event(content=f" {number}")
        await wait(_engine.token_ms)
    ended_ns = time.monotonic_ns()
    _record.waited(request, Phase.DECODE.value, ended_ns - begun_ns)
    _record.stamped(request, OUTPUT, ended_ns)
    # In one piece: a gateway that forwards bytes waits for the last event, be it content or none.
    over = _event(finish_reason="stop") + "data: [DONE]\n\n"
    yield _event(content=mark(request, LAST)) + over


def _event(content: str | None = None, finish_reason: str | None = None) -> str:
    delta = {} if content is None else {"role": "assistant", "content": content}
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "emulated",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }
    return f"data: {json.dumps(chunk)}\n\n"


app = _served(Starlette(routes=[Route("/v1/chat/completions", _chat, methods=["POST"])]))
