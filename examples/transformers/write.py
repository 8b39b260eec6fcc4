"""A page whose model runs in its own process: it writes, writes on from a cache, loses its reader.

It runs in an environment that has torch and transformers. TRANSFORMERS_MODEL is a name or a folder;
TRANSFORMERS_WEIGHTS=random fills the model at random, to look at times only.
"""

from __future__ import annotations

import copy
import os
from threading import Thread

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    TextIteratorStreamer,
)

import llmlat_otel.auto  # noqa: F401  (all that llmlat-otel asks of an app)
from llmlat_otel import agent

__all__ = ["main"]

MODEL = os.environ.get("TRANSFORMERS_MODEL", "Qwen/Qwen2.5-0.5B-Instruct")
RULES = "Answer in one sentence, name your source, and say so if you do not know. " * 16
QUESTION = RULES + "Where did the time of my request go?"
WORDS = 48
SOON = 6


class ReaderLeftError(Exception):
    """Nobody reads any more."""


class Reader:
    """Reads what the model writes, as it comes, and leaves after so many tokens."""

    def __init__(self, pieces: TextIteratorStreamer, patience: int) -> None:
        self.pieces = pieces
        self.patience = patience

    def put(self, tokens: torch.Tensor) -> None:
        """The model has picked a token; the prompt comes first."""
        if self.patience < 0:
            raise ReaderLeftError
        self.patience -= 1
        self.pieces.put(tokens)

    def end(self) -> None:
        """The model has written all."""
        self.pieces.end()


class Page:
    """A model and its tokenizer."""

    def __init__(self) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(MODEL)
        if os.environ.get("TRANSFORMERS_WEIGHTS") == "random":
            torch.manual_seed(0)
            config = AutoConfig.from_pretrained(MODEL)
            self.model = AutoModelForCausalLM.from_config(config).eval()
        else:
            self.model = AutoModelForCausalLM.from_pretrained(MODEL).eval()

    def write(self, cache: DynamicCache, patience: int = WORDS) -> str:
        """The answer as it was read; the model writes in a thread of its own."""
        pieces = TextIteratorStreamer(self.tokenizer, skip_prompt=True)
        thread = Thread(target=self._generate, args=(cache, Reader(pieces, patience)))
        thread.start()
        text = "".join(pieces)
        thread.join()
        return text

    def _generate(self, cache: DynamicCache, reader: Reader) -> None:
        ids = self.tokenizer(QUESTION, return_tensors="pt").input_ids
        options = {"min_new_tokens": WORDS, "max_new_tokens": WORDS, "past_key_values": cache}
        try:
            self.model.generate(ids, streamer=reader, **options)
        except ReaderLeftError:
            reader.end()

    def nothing_read(self) -> DynamicCache:
        """A cache to begin with."""
        return DynamicCache(config=self.model.config)

    def rules_read(self) -> DynamicCache:
        """A cache that holds how all questions begin."""
        cache = self.nothing_read()
        rules = self.tokenizer(RULES, return_tensors="pt").input_ids[:, :-1]
        with torch.no_grad():
            self.model(rules, past_key_values=cache, use_cache=True)
        return cache


def main() -> None:
    """Write an answer, write it again from a cache, and once more for a reader who leaves."""
    page = Page()
    rules = page.rules_read()
    with agent("page"):
        for cache, patience in (
            (page.nothing_read(), WORDS),
            (copy.deepcopy(rules), WORDS),
            (copy.deepcopy(rules), SOON),
        ):
            print("the model:", *page.write(cache, patience).split())


if __name__ == "__main__":
    main()
