"""The emulated engine as a client of OpenAI's library sees it, on a clock that does not wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from batch_loop import BatchLoop
from emulated_engine import EmulatedEngine
from scheduler import Costs, Limits, Scheduler

T = TypeVar("T")

LIMITS = Limits(running=1, step_tokens=16)
COSTS = Costs(step_ns=8_000_000, prefill_token_ns=1_000_000, decode_token_ns=2_000_000)
DECODE_STEP_MS = 10.0
MESSAGES: Any = [{"role": "user", "content": "Where are my orders?"}]
PROMPT_TOKENS = 25
PREFILL_MS = 2 * 8.0 + PROMPT_TOKENS * 1.0
GET_ORDERS: Any = {
    "type": "function",
    "function": {
        "name": "get_orders",
        "parameters": {
            "type": "object",
            "properties": {
                "account": {"type": "string", "enum": ["4711"]},
                "limit": {"type": "integer", "minimum": 2},
            },
        },
    },
}


class InstantClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self._now_ns = 1_000_000_000

    def now_ns(self) -> int:
        return self._now_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        self._now_ns += duration_ns
        await asyncio.sleep(0)


@asynccontextmanager
async def client_of(engine: EmulatedEngine) -> AsyncIterator[AsyncOpenAI]:
    transport = httpx2.ASGITransport(app=engine.app)
    async with (
        engine.app.router.lifespan_context(engine.app),
        httpx2.AsyncClient(transport=transport) as http,
    ):
        yield AsyncOpenAI(
            base_url="http://engine/v1", api_key="none", http_client=http, max_retries=0
        )


def ask(use: Callable[[AsyncOpenAI], Awaitable[T]]) -> T:
    async def session() -> T:
        async with client_of(EmulatedEngine(LIMITS, COSTS, InstantClock())) as client:
            return await use(client)

    return asyncio.run(session())


async def chunks_of(client: AsyncOpenAI, **options: Any) -> list[Any]:
    stream: Any = await client.chat.completions.create(
        model="any", messages=MESSAGES, stream=True, **options
    )
    return [chunk async for chunk in stream]


def streamed(**options: Any) -> list[Any]:
    return ask(lambda client: chunks_of(client, **options))


def completed(**options: Any) -> Any:
    async def create(client: AsyncOpenAI) -> Any:
        return await client.chat.completions.create(model="any", messages=MESSAGES, **options)

    return ask(create)


def test_a_stream_ends_with_usage_and_timings_that_leave_the_queue_out() -> None:
    chunks = streamed(max_tokens=5, stream_options={"include_usage": True})
    last = chunks[-1]
    assert last.choices == []
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (PROMPT_TOKENS, 5)
    assert last.timings == {
        "cache_n": 0,
        "prompt_n": PROMPT_TOKENS,
        "prompt_ms": PREFILL_MS,
        "predicted_n": 5,
        "predicted_ms": 4 * DECODE_STEP_MS,
    }
    assert [hasattr(chunk, "timings") for chunk in chunks[:-1]] == [False] * (len(chunks) - 1)


def test_a_text_has_one_chunk_for_each_token() -> None:
    chunks = streamed(max_tokens=5)
    texts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert len([text for text in texts if text]) == 5
    assert chunks[-1].choices[0].finish_reason == "length"


def test_progress_comes_from_admission_on_and_only_when_asked_for() -> None:
    chunks = streamed(max_tokens=2, extra_body={"return_progress": True})
    progress = [chunk.prompt_progress for chunk in chunks if hasattr(chunk, "prompt_progress")]
    assert [(each["processed"], each["time_ms"]) for each in progress] == [
        (0, 0),
        (16, 24),
        (25, 41),
    ]
    assert {each["total"] for each in progress} == {PROMPT_TOKENS}
    assert not any(hasattr(chunk, "prompt_progress") for chunk in streamed(max_tokens=2))


def test_a_second_request_waits_until_the_first_has_left_the_batch() -> None:
    async def two(client: AsyncOpenAI) -> list[str]:
        order: list[str] = []

        async def one(name: str) -> None:
            await chunks_of(client, max_tokens=4, extra_body={"return_progress": True})
            order.append(name)

        await asyncio.gather(one("first"), one("second"))
        return order

    assert ask(two) == ["first", "second"]


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_orders"}}]
)
def test_tool_choice_forces_a_call_with_arguments_of_its_schema(choice: Any) -> None:
    chunks = streamed(tools=[GET_ORDERS], tool_choice=choice, max_tokens=64)
    calls = [
        call
        for chunk in chunks
        for choice in chunk.choices
        for call in choice.delta.tool_calls or []
    ]
    assert calls[0].id
    assert calls[0].function.name == "get_orders"
    arguments = "".join(call.function.arguments for call in calls)
    assert json.loads(arguments) == {"account": "4711", "limit": 2}
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_a_json_schema_shapes_the_text() -> None:
    schema = {
        "type": "object",
        "properties": {
            "items": {"type": "array"},
            "sure": {"type": "boolean"},
            "note": {"type": "string"},
        },
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    reply = completed(response_format=wanted)
    assert json.loads(reply.choices[0].message.content) == {
        "items": [],
        "sure": True,
        "note": "text",
    }
    assert reply.choices[0].finish_reason == "stop"


def test_a_reply_that_is_not_streamed_carries_usage_and_timings() -> None:
    reply = completed(max_tokens=3)
    assert reply.usage.total_tokens == PROMPT_TOKENS + 3
    assert reply.timings["predicted_ms"] == 2 * DECODE_STEP_MS
    assert completed(tools=[GET_ORDERS], tool_choice="required").choices[0].message.tool_calls


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"max_tokens": -1}, "max_tokens"),
        ({"tool_choice": "required"}, "no tools"),
        ({"tools": [GET_ORDERS], "tool_choice": {"function": {"name": "x"}}}, "not among"),
        ({"extra_body": {"messages": []}}, "messages"),
        ({"extra_body": {"messages": [1], "tools": [{}]}}, "malformed"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(options: Any, complaint: str) -> None:
    with pytest.raises(openai.BadRequestError, match=complaint):
        completed(**options)


def test_whoever_stops_following_gives_up_the_place_in_the_batch() -> None:
    async def leave() -> tuple[int, ...]:
        scheduler = Scheduler(LIMITS, COSTS)
        loop = BatchLoop(scheduler, InstantClock())
        serving = asyncio.create_task(loop.run())
        ticks = loop.follow(prompt_tokens=10, output_tokens=10)
        admitted = await anext(ticks)
        assert (admitted.prefilled, admitted.sampled) == (0, 0)
        assert scheduler.running
        await ticks.aclose()
        serving.cancel()
        return scheduler.running

    assert asyncio.run(leave()) == ()


def test_the_server_says_that_it_is_well_and_names_its_model() -> None:
    async def look(client: AsyncOpenAI) -> tuple[Any, list[str]]:
        health = await client.get("/../health", cast_to=object)
        return health, [model.id async for model in client.models.list()]

    health, models = ask(look)
    assert health == {"status": "ok"}
    assert models == ["emulated-adviser"]
