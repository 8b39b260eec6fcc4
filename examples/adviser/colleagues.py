"""Busy colleagues: uninstrumented load that keeps the model server's places taken.

They run in a process of their own and ask, one question after the other, until they are stopped;
with more of them than the server has places, the adviser has to queue as it would at work.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from openai import AsyncOpenAI

__all__ = ["main"]

QUESTION = "Sum up the rules for refunds, returns and complaints for a new colleague."
ANSWER_TOKENS = 40


async def ask_forever(client: AsyncOpenAI, colleague: int) -> None:
    """One colleague's day."""
    while True:
        await client.chat.completions.create(
            model=os.environ["ADVISER_MODEL"],
            messages=[{"role": "user", "content": f"Colleague {colleague}: {QUESTION}"}],
            max_tokens=ANSWER_TOKENS,
            temperature=0,
        )


async def main() -> None:
    """Keep the server busy until SIGTERM."""
    parser = argparse.ArgumentParser(description="Keep a model server busy until SIGTERM.")
    parser.add_argument("--count", type=int, default=3, help="colleagues (default: 3)")
    arguments = parser.parse_args()
    async with AsyncOpenAI(timeout=None) as client:
        await asyncio.gather(*(ask_forever(client, n) for n in range(arguments.count)))


if __name__ == "__main__":
    asyncio.run(main())
