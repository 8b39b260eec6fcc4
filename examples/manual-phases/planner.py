"""A travel planner that names its own steps: look-ups in parallel, tools in threads, a choice.

The pauses stand for what others would take: two stores, three airlines, a traveller who thinks.
"""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

from openai import AsyncOpenAI

import llmlat_otel.auto  # noqa: F401  (times the model's call)
from llmlat_otel import agent, first_content, phase, retrieval, tool

__all__ = ["main"]

AIRLINES = {"Heron": 0.08, "Swift": 0.24, "Tern": 0.16}
"""What airline takes how long to quote, in seconds."""


@retrieval("calendar")
async def free_days() -> str:
    """When the traveller could go."""
    await asyncio.sleep(0.12)
    return "Monday, Thursday"


@retrieval("preferences")
async def preferences() -> str:
    """What the traveller likes."""
    await asyncio.sleep(0.05)
    return "an aisle seat, no night flights"


@tool("quote")
def quote(airline: str) -> str:
    """What one airline asks for; its client blocks, so that it runs in a thread."""
    time.sleep(AIRLINES[airline])
    return f"{airline}: 120 euros"


def quotes() -> list[str]:
    """All airlines' prices, asked for at once in threads of our own."""
    with ThreadPoolExecutor(max_workers=len(AIRLINES)) as pool:
        return list(pool.map(quote, AIRLINES))


async def choice(offers: list[str]) -> str:
    """The offer that the traveller takes: time that no program can make shorter."""
    async with phase("human_wait"):
        await asyncio.sleep(0.2)
    return offers[0]


async def itinerary(client: AsyncOpenAI, facts: str) -> None:
    """Show the model's itinerary, but nothing before its first sentence could be checked.

    So the first content that the traveller sees is later than the first that the model sent.
    """
    stream = await client.chat.completions.create(
        model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"),
        messages=[{"role": "user", "content": f"Write an itinerary. {facts}"}],
        max_completion_tokens=32,
        stream=True,
    )
    held, is_shown = "", False
    async for chunk in stream:
        held += "".join(choice.delta.content or "" for choice in chunk.choices)
        if not is_shown and len(held) > 40:
            is_shown = True
            first_content()
        if is_shown:
            print(held, end="", flush=True)
            held = ""
    print(held + "\n")


@agent("planner")
async def plan(client: AsyncOpenAI) -> None:
    """One trip: everything in here belongs to one run of the agent."""
    days, likes = await asyncio.gather(free_days(), preferences())
    offers = await asyncio.to_thread(quotes)
    taken = await choice(offers)
    await itinerary(client, f"Free: {days}. Likes: {likes}. Flight: {taken}.")


async def main() -> None:
    """Plan one trip; OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL say who writes it."""
    async with AsyncOpenAI() as client:
        await plan(client)


if __name__ == "__main__":
    asyncio.run(main())
