"""An app that asks through the gateway: one streamed call, which it times."""

from __future__ import annotations

import os

import openai

import llmlat_otel.auto  # noqa: F401  (times the call, and names it to the gateway)

__all__ = ["main"]

QUESTION = "Where did the time of my request go?"


def main() -> None:
    """Ask once, through the gateway at EXAMPLE_URL."""
    url = os.environ.get("EXAMPLE_URL", "http://127.0.0.1:8000")
    with openai.OpenAI(base_url=f"{url}/v1") as client:
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
