"""The app of these tests: questions asked through a gateway, each one a trace with its name.

Those of one round are asked at once, in their order; the next round waits for all of their answers.
"""

from __future__ import annotations

import asyncio
import json
import os

from openai import AsyncOpenAI, AsyncStream

import llmlat_otel.auto  # noqa: F401  (times the calls below)
from llmlat_otel import agent
from tests.engines.parts import MODEL_NAME
from tests.engines.questions import QUESTIONS, Question


async def ask(client: AsyncOpenAI, question: Question) -> None:
    """One trace."""
    async with agent(question.name):
        answer = await client.chat.completions.create(
            model=MODEL_NAME,
            messages=[{"role": "user", "content": question.about + question.words * " bada"}],
            max_tokens=question.answer,
            stream=question.is_streamed,
            extra_body={"ignore_eos": True, "priority": question.priority},
        )
        if isinstance(answer, AsyncStream):
            assert [chunk async for chunk in answer]


async def main() -> None:
    """Ask all."""
    rounds = json.loads(os.environ[QUESTIONS])
    async with AsyncOpenAI(timeout=None, max_retries=0) as client:
        for questions in rounds:
            await asyncio.gather(*(ask(client, Question(*question)) for question in questions))


if __name__ == "__main__":
    asyncio.run(main())
