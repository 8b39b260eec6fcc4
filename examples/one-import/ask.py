"""The smallest app: one import, and one streamed call, which it times."""

from __future__ import annotations

import os

import openai

import llmlat_otel.auto  # noqa: F401  (this is all that llmlat-otel asks of an app)

QUESTION = "Where did the time of my request go?"


def main() -> None:
    """Ask once; OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL say whom."""
    with openai.OpenAI() as client:
        stream = client.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"),
            messages=[{"role": "user", "content": QUESTION}],
            max_completion_tokens=24,
            stream=True,
        )
        for chunk in stream:
            for choice in chunk.choices:
                print(choice.delta.content or "", end="", flush=True)
    print("\n")


if __name__ == "__main__":
    main()
