"""A program that does with openai what users do, and writes down all that it sees.

    python -m tests.integration.sdk.transcript MODE

MODE is `none` (without us), `spans` or `attributes` (timed, phases written so), or `harmful`: with
a wrapper that does what many do, and changes what the program sees.

Written as JSON: for each cell what was seen, warned of, logged and left open, which must be the
same in any mode; beside it what we recorded, and who logged anything at warning or above.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import json
import logging
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import openai

from tests.integration.sdk import transcript_calls as calls
from tests.integration.sdk import transcript_values as show
from tests.integration.sdk.openai_server import Server
from tests.integration.sdk.transcript_ways import ASYNC_WAYS, SHAPES, SYNC_WAYS, prepare, settle
from tests.integration.serving import serving

HTTP: Any = importlib.import_module("httpx2" if openai.__version__[0] != "1" else "httpx")
CLOSED_WITHIN_S = 10
EVENTS_BEFORE_INTERRUPT = 3


class Interrupting(HTTP.HTTPTransport):  # type: ignore[misc]
    """The user presses Ctrl-C when some events are there."""

    def handle_request(self, request: Any) -> Any:
        answer = super().handle_request(request)
        answer.stream = _Interrupted(answer.stream)
        return answer


class _Interrupted(HTTP.SyncByteStream):  # type: ignore[misc]
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Any:
        seen = b""
        for part in self._stream:
            yield part
            seen += part
            if seen.count(b"\n\n") >= EVENTS_BEFORE_INTERRUPT:
                raise KeyboardInterrupt

    def close(self) -> None:
        self._stream.close()


class Logged(logging.Handler):
    """What was logged, by anybody."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[list[str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        library = record.name.partition(".")[0]
        # What the transports say at debug has times in it.
        if record.levelno > logging.DEBUG or library not in {"openai", "httpcore", "httpcore2"}:
            self.lines.append([record.levelname, record.name, show.steady(record.getMessage())])

    def taken(self) -> list[list[str]]:
        lines, self.lines = self.lines, []
        return [line for line in lines if line[0] != "DEBUG" or line[1] != "asyncio"]


class Transcript:
    """Runs cells, and writes down what each sees.

    Args:
        recorded: What we have recorded since it was last asked.
    """

    def __init__(self, recorded: Callable[[], Any]) -> None:
        self.seen: dict[str, Any] = {}
        self.recorded: dict[str, Any] = {}
        self.loud: list[list[str]] = []
        self._logged = Logged()
        self._take_recorded = recorded
        logging.getLogger().addHandler(self._logged)
        logging.getLogger().setLevel(logging.DEBUG)

    def run(self, name: str, server: Server, cell: Callable[[Callable[..., None]], Any]) -> None:
        """Run a cell of synchronous code."""
        notes: list[Any] = []
        server.requests.clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                cell(lambda what, seen: notes.append([what, seen]))
            except Exception as raised:  # noqa: BLE001 - what escapes is part of what was seen
                notes.append(["escaped", show.error(raised)])
            gc.collect()
        self._end(name, server, notes, warned)

    async def run_async(
        self, name: str, server: Server, cell: Callable[[Callable[..., None]], Awaitable[None]]
    ) -> None:
        """Run a cell of asynchronous code."""
        notes: list[Any] = []
        server.requests.clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                await cell(lambda what, seen: notes.append([what, seen]))
            except Exception as raised:  # noqa: BLE001 - what escapes is part of what was seen
                notes.append(["escaped", show.error(raised)])
            await settle()
        self._end(name, server, notes, warned)

    def _end(self, name: str, server: Server, notes: list[Any], warned: Any) -> None:
        said = sorted([each.category.__name__, show.steady(each.message)] for each in warned)
        logged = self._logged.taken()
        self.loud += [line for line in logged if line[0] in {"WARNING", "ERROR", "CRITICAL"}]
        requests = [body for _, body in server.requests]
        self.seen[name] = {"notes": notes, "warned": said, "logged": logged, "sent": requests}
        self.recorded[name] = self._take_recorded()

    def note(self, name: str, what: str, seen: Any) -> None:
        """Note something of a cell that is over."""
        self.seen[name][what] = seen


def pool(client: Any) -> Any:
    """What a client's connections are at."""
    connections = client._client._transport._pool.connections
    return sorted([each.is_idle(), each.is_closed()] for each in connections)


def left_open(server: Server) -> int:
    """How many connections the server still has, when those that were closed are gone."""
    until = time.monotonic() + CLOSED_WITHIN_S
    while server.open_connections > 0 and time.monotonic() < until:
        time.sleep(0.001)
    return server.open_connections


def sync_cells(transcript: Transcript, server: Server) -> None:
    def with_client(name: str, cell: Callable[..., Any], **options: Any) -> None:
        gc.freeze()
        release = threading.Event()
        prepare(server, name, release.wait)
        options.setdefault("http_client", openai.DefaultHttpxClient(verify=False))
        with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0, **options) as client:
            transcript.run(name, server, functools.partial(cell, client))
            release.set()
            transcript.note(name, "pool", pool(client))
        transcript.note(name, "open", left_open(server))

    probe = openai.OpenAI(base_url=server.url, api_key="k")
    for shape in SHAPES:
        for way in SYNC_WAYS if shape.has(probe) else ():
            options = {}
            if way.__name__ == "interrupted":
                options["http_client"] = HTTP.Client(transport=Interrupting())
            with_client(
                f"sync, {shape.name}: {way.__name__}",
                lambda client, note, way=way, shape=shape: way(client, shape, note),
                **options,
            )
    for calling in (calls.plain_calls, calls.raw_calls, calls.streaming_responses):
        with_client(f"sync: {calling.__name__}", lambda *args, do=calling: asyncio.run(do(*args)))
    for trying in (calls.failures, calls.retries):
        with_client(
            f"sync: {trying.__name__}", lambda *args, do=trying: asyncio.run(do(*args, server))
        )
    with_client("sync: methods", calls.methods)
    with_client("sync: refused", lambda _, note: calls.refused(openai.OpenAI, note))


async def async_cells(transcript: Transcript, server: Server) -> None:
    async def with_client(name: str, cell: Callable[..., Any]) -> None:
        gc.freeze()
        release = threading.Event()
        prepare(server, name, release.wait)
        options: dict[str, Any] = {"http_client": openai.DefaultAsyncHttpxClient(verify=False)}
        async with openai.AsyncOpenAI(
            base_url=server.url, api_key="k", max_retries=0, **options
        ) as client:
            await transcript.run_async(name, server, functools.partial(cell, client))
            release.set()
            transcript.note(name, "pool", pool(client))
        transcript.note(name, "open", await asyncio.to_thread(left_open, server))

    probe = openai.AsyncOpenAI(base_url=server.url, api_key="k")
    for shape in SHAPES:
        for way in ASYNC_WAYS if shape.has(probe) else ():
            await with_client(
                f"async, {shape.name}: {way.__name__}",
                lambda client, note, way=way, shape=shape: way(client, shape, note),
            )
    for calling in (
        calls.plain_calls,
        calls.raw_calls,
        calls.streaming_responses,
        calls.never_awaited,
        calls.a_task,
        calls.cancelled_before_it_runs,
    ):
        await with_client(f"async: {calling.__name__}", calling)
    for trying in (calls.failures, calls.retries):
        await with_client(f"async: {trying.__name__}", lambda *args, do=trying: do(*args, server))
    with suppress(TypeError):
        await with_client("async: methods", _methods)


async def _methods(client: Any, note: Any) -> None:
    calls.methods(client, note)


def timed_by_us(mode: str) -> Callable[[], Any]:
    """Switch the SDK on, and give what it has recorded since it was last asked."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

    import llmlat_otel
    from llmlat_otel.core.guard import faults
    from llmlat_semconv import attributes as names

    class Spans(SpanProcessor):
        started, ended = 0, 0
        done: list[Any] = []

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            self.started += 1

        def on_end(self, span: Any) -> None:
            self.ended += 1
            if not span.name.startswith(("phase", "attempt")):
                said = dict(span.attributes)
                wanted = (names.LLMLAT_STREAM_END, names.LLMLAT_STREAM_CHUNK_COUNT)
                self.done.append([span.name, *(said.get(name) for name in wanted)])

        def taken(self) -> dict[str, Any]:
            until = time.monotonic() + CLOSED_WITHIN_S
            while self.started > self.ended and time.monotonic() < until:
                time.sleep(0.001)  # What the collector has found is ended by a thread of its own.
            done = list(self.done)
            self.done.clear()
            return {"spans": done, "open": self.started - self.ended, "faults": dict(faults())}

    spans = Spans()
    provider = TracerProvider()
    provider.add_span_processor(spans)
    trace.set_tracer_provider(provider)
    llmlat_otel.instrument()
    return spans.taken


def harm() -> None:
    """Wrap as many do: a stream becomes a generator, and the method a plain function."""
    owner = importlib.import_module("openai.resources.chat.completions")
    plain = owner.Completions.create

    def create(self: Any, **kwargs: Any) -> Any:
        result = plain(self, **kwargs)
        return (each for each in result) if isinstance(result, openai.Stream) else result

    owner.Completions.create = create


def main(mode: str) -> None:
    """Run all cells and print the transcript."""
    recorded: Callable[[], Any] = dict
    if mode in {"spans", "attributes"}:
        recorded = timed_by_us(mode)
    elif mode == "harmful":
        harm()
    # The collector runs when we say, and only over what is new: the libraries hold so much that a
    # look at all of it takes longer than any cell.
    gc.disable()
    transcript = Transcript(recorded)
    server = Server()
    with serving(server):
        sync_cells(transcript, server)
        asyncio.run(async_cells(transcript, server))
    said = {"seen": transcript.seen, "recorded": transcript.recorded, "loud": transcript.loud}
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
