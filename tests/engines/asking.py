"""The app of these tests: questions asked through a gateway, each one a trace with its name.

Those of one round are asked at once, in their order; the next round waits for all of their answers.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Final, NamedTuple

from openai import AsyncOpenAI, AsyncStream

import llmlat_otel.auto  # noqa: F401  (times the calls below)
from llmlat_otel import agent
from tests.engines.parts import MODEL_NAME

QUESTIONS: Final = "QUESTIONS"
"""The variable with all rounds, as JSON."""


class Question(NamedTuple):
    """One question.

    Attributes:
        name: of its agent, and so of its trace.
        words: its length; the model knows the word, which is one token.
        answer: how many tokens are to be answered.
        about: what it begins with; another beginning shares no prefix.
        priority: the greatest is the first to be evicted, and the last to be scheduled.
        is_streamed: whether the answer is.
    """

    name: str
    words: int
    answer: int
    about: str = ""
    priority: int = 0
    is_streamed: bool = True


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
