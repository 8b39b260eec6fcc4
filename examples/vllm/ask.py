"""Three questions at once to a vLLM server that has two places: one of them waits, and says so."""

from __future__ import annotations

import asyncio
import os

import openai

import llmlat_otel.auto  # noqa: F401  (all that llmlat-otel asks of an app)
from llmlat_otel import agent

QUESTIONS = (
    "Where did the time of my request go?",
    "Who was served while I waited?",
    "How long did the first word take?",
)


async def ask(client: openai.AsyncOpenAI, model: str, question: str) -> str:
    """One answer, read as it comes."""
    stream = await client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": question}],
        max_completion_tokens=128,
        stream=True,
    )
    pieces: list[str] = []
    async for chunk in stream:
        pieces.extend(choice.delta.content or "" for choice in chunk.choices)
    return "".join(pieces)


async def main() -> None:
    """Ask the server behind EXAMPLE_URL for the one model that it serves."""
    url = os.environ.get("EXAMPLE_URL", "http://127.0.0.1:8000")
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        (model,) = (await client.models.list()).data
        async with agent("three questions"):
            asked = (ask(client, model.id, question) for question in QUESTIONS)
            answers = await asyncio.gather(*asked)
    for question, answer in zip(QUESTIONS, answers, strict=True):
        print(f"{question}\n{answer}\n")


if __name__ == "__main__":
    asyncio.run(main())
