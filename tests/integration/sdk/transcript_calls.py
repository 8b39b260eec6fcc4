"""Calls that are no streams, or fail, and what can be asked of the methods themselves."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import openai
import pydantic

from tests.integration.sdk import transcript_values as show
from tests.integration.sdk.openai_server import Server
from tests.integration.sdk.transcript_ways import CHAT, RESPONSE, Note, has_responses


class Answer(pydantic.BaseModel):
    """What a completion is to be parsed as; the server's is none."""

    text: str


def parsing(client: Any) -> Any:
    chat = client.chat.completions
    return (chat if hasattr(chat, "parse") else client.beta.chat.completions).parse


Call = Callable[[Any], Any]
"""Makes a call, whose result may have to be awaited."""

PLAIN: dict[str, Call] = {
    "create": lambda client: client.chat.completions.create(**CHAT),
    "parse": lambda client: parsing(client)(**CHAT),
    "parse what is no answer": lambda client: parsing(client)(**CHAT, response_format=Answer),
    "missing arguments": lambda client: client.chat.completions.create(model="m"),
    "positional arguments": lambda client: client.chat.completions.create("m"),
    "an unknown argument": lambda client: client.chat.completions.create(**CHAT, unknown=1),
    "embeddings of nothing": lambda client: client.embeddings.create(model="m", input=[]),
    "responses": lambda client: client.responses.create(**RESPONSE) if has_responses(client) else 0,
}
FAILING: dict[str, list[int]] = {
    "400": [400],
    "401": [401],
    "429": [429],
    "500": [500],
    "503": [503],
}


async def awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


async def plain_calls(client: Any, note: Note) -> None:
    """The same for both kinds of client."""
    for name, call in PLAIN.items():
        try:
            note(name, show.value(await awaited(call(client))))
        except Exception as raised:  # noqa: BLE001 - whatever it is, it is noted
            note(name, show.error(raised))


async def raw_calls(client: Any, note: Note) -> None:
    raw = await awaited(client.chat.completions.with_raw_response.create(**CHAT))
    note("raw", show.thing(raw))
    note("headers", [raw.headers["content-type"], raw.status_code, raw.retries_taken])
    note("text", [show.steady(raw.text), show.steady(raw.content)])
    note("parsed", show.value(raw.parse()))
    note("the same", raw.parse() is raw.parse())
    note("otherwise", show.outcome(lambda: show.value(raw.parse(to=dict))))
    note("not at all", show.outcome(lambda: raw.parse(to=Answer)))


READS = ("parse", "read", "text", "json", "iter_bytes", "iter_text", "iter_lines")


async def streaming_responses(client: Any, note: Note) -> None:
    for name in READS:
        manager = client.chat.completions.with_streaming_response.create(**CHAT)
        note("manager", [show.kind(manager), type(manager).__name__])
        is_async = hasattr(manager, "__aenter__")
        entered = await manager.__aenter__() if is_async else manager.__enter__()
        note("entered", show.thing(entered))
        note(name, await read_with(entered, name))
        left = manager.__aexit__(None, None, None) if is_async else manager.__exit__(*[None] * 3)
        note("left", await awaited(left))
        note("closed", [entered.is_closed, entered.http_response.is_closed])


async def read_with(entered: Any, name: str) -> Any:
    result = await awaited(getattr(entered, name)())
    if inspect.isgenerator(result):
        return show.steady(list(result))
    if inspect.isasyncgen(result):
        return show.steady([part async for part in result])
    return [show.value(result), getattr(result, "id", None)]


async def failures(client: Any, note: Note, server: Server) -> None:
    for name, statuses in FAILING.items():
        for streamed in (False, True):
            server.statuses = list(statuses)
            try:
                await awaited(client.chat.completions.create(**CHAT, stream=streamed))
            except Exception as raised:  # noqa: BLE001 - whatever it is, it is noted
                note(f"{name} {streamed}", [show.error(raised), show.response(raised)])


async def retries(client: Any, note: Note, server: Server) -> None:
    server.statuses = [500, 429]
    patient = client.with_options(max_retries=2)
    note("in the end", show.value(await awaited(patient.chat.completions.create(**CHAT))))
    note("requests", len(server.requests))


METHODS = ("create", "with_raw_response.create", "with_streaming_response.create")


def methods(client: Any, note: Note) -> None:
    """What a method says of itself."""
    for path in METHODS:
        owner = client.chat.completions
        for part in path.split("."):
            owner = getattr(owner, part)
        note(path, described(owner))
    bound, plain = client.chat.completions.create, type(client.chat.completions).create
    note("plain", described(plain))
    note("bound", [bound.__self__ is client.chat.completions, bound in {bound}])
    note("copies", [copy.copy(bound) == bound, copy.copy(plain) == plain])
    note("pickle", pickle.loads(pickle.dumps(plain)) == plain)


def described(function: Any) -> Any:
    return [
        show.steady(inspect.signature(function)),
        inspect.iscoroutinefunction(function),
        asyncio.iscoroutinefunction(function),
        inspect.isfunction(function) or inspect.ismethod(function),
        [getattr(function, name, None) for name in ("__name__", "__qualname__", "__module__")],
        len(function.__doc__ or ""),
        inspect.unwrap(function).__qualname__,
        inspect.getsourcefile(inspect.unwrap(function)),
    ]


async def never_awaited(client: Any, note: Note) -> None:
    coroutine = client.chat.completions.create(**CHAT)
    note("coroutine", [show.kind(coroutine), coroutine.__name__, coroutine.__qualname__])
    del coroutine
    gc.collect()


async def a_task(client: Any, note: Note) -> None:
    task = asyncio.ensure_future(client.chat.completions.create(**CHAT))
    note("task", [show.kind(task), task.get_coro().__qualname__])
    note("done", show.value(await task))


async def cancelled_before_it_runs(client: Any, note: Note) -> None:
    task = asyncio.ensure_future(client.chat.completions.create(**CHAT))
    task.cancel()
    try:
        await task
    except asyncio.CancelledError as raised:
        note("raised", show.error(raised))


def refused(make: Callable[..., Any], note: Note) -> None:
    """Nobody listens there."""
    with make(base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=1) as client:
        try:
            client.chat.completions.create(**CHAT)
        except openai.APIConnectionError as raised:
            note("raised", show.error(raised))
