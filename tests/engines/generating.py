"""Runs a tiny Llama in many ways, each without our code and with it; prints what came of both.

Runs in the environment of the engines, with the model's folder as its argument. The last line is a
JSON object: for each way `plain` and `timed`, which are the tokens, a text or an exception; `spans`
as `Recorded.tree()` gives them; `seen`, the instants at which a caller saw the model run and was
asked whether to stop; and how many `faults` were ours.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers import TextIteratorStreamer as Texts
from transformers.generation.stopping_criteria import StoppingCriteriaList

import llmlat_otel
from llmlat_otel.core.clock import Clock
from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors import threads, transformers
from llmlat_otel.settings import Settings
from llmlat_otel.testing import recorded

PAD = 511
SOME_END = list(range(100, 160))
"""So many tokens end a row that the rows of a batch end apart."""

HOOKS = ("_begun", "_enter", "_prompt", "_asked", "_answered", "_stopped", "_went_round")

folder = sys.argv[1]
torch.manual_seed(0)
config = AutoConfig.from_pretrained(folder)
model, draft = (AutoModelForCausalLM.from_config(config).eval() for _ in range(2))
tokenizer = AutoTokenizer.from_pretrained(folder)
prompt = torch.arange(10, 310)[None]
batch = torch.arange(10, 90).reshape(4, 20)
seen: list[tuple[str, int]] = []
greedy: dict[str, Any] = {"do_sample": False, "pad_token_id": PAD, "eos_token_id": None}


def generated(ids: torch.Tensor = prompt, **options: Any) -> list[list[int]]:
    """What is added to the prompt."""
    found = model.generate(ids, **{**greedy, "max_new_tokens": 8, **options})
    tokens: list[list[int]] = found[:, ids.shape[1] :].tolist()
    return tokens


def asking(last: int, error: BaseException | None = None) -> StoppingCriteriaList:
    """A criterion that ends all rows when it is asked so often, or raises an exception."""
    asked = []

    def criterion(ids: torch.Tensor, _: object, **__: object) -> torch.Tensor:
        seen.append(("asked", time.monotonic_ns()))
        asked.append(ids)
        if len(asked) == last and error is not None:
            raise error
        return torch.full((ids.shape[0],), len(asked) >= last)

    return StoppingCriteriaList([criterion])


def watched() -> list[list[int]]:
    """A caller's own hooks tell when the model ran."""
    hooks = [
        model.register_forward_pre_hook(lambda *_: seen.append(("runs", time.monotonic_ns()))),
        model.register_forward_hook(lambda *_: seen.append(("ran", time.monotonic_ns()))),
    ]
    try:
        return generated(stopping_criteria=asking(5))
    finally:
        for hook in hooks:
            hook.remove()


class Streamer:
    """Takes so many tokens and no more."""

    def __init__(self, most: int) -> None:
        self.most = most

    def put(self, _: torch.Tensor) -> None:
        self.most -= 1
        if self.most < 0:
            raise ConnectionError("gone")

    def end(self) -> None:
        pass


def streamed() -> str:
    """As a chat page does it: the model in a thread, its text as it comes."""
    texts = Texts(tokenizer, skip_prompt=True)
    options = {**greedy, "max_new_tokens": 8, "streamer": texts}
    with llmlat_otel.agent("page"):
        thread = threading.Thread(target=model.generate, args=(prompt,), kwargs=options)
        thread.start()
        text = "".join(texts)
        thread.join()
    return text


def side_by_side() -> list[list[list[int]]]:
    """Two prompts in two threads."""
    found: dict[int, list[list[int]]] = {}

    def run(width: int) -> None:
        found[width] = generated(prompt[:, :width])

    runs = [threading.Thread(target=run, args=(width,)) for width in (100, 200)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    return [found[width] for width in sorted(found)]


def with_a_prefix() -> list[list[int]]:
    """The cache of an earlier run holds the beginning of the prompt."""
    cache = DynamicCache(config=config)
    with torch.no_grad():
        model(prompt[:, :200], past_key_values=cache, use_cache=True)
    return generated(past_key_values=cache)


def failing() -> list[list[int]]:
    """The model itself fails, in its third pass."""
    runs = []

    def fail(*_: object) -> None:
        runs.append(1)
        if len(runs) == 3:
            raise MemoryError("no room")

    hook = model.register_forward_pre_hook(fail)
    try:
        return generated()
    finally:
        hook.remove()


def compiled() -> list[list[int]]:
    """With the whole forward pass as one graph, which none of our code is in."""
    forward = model.forward
    model.forward = torch.compile(forward, backend="eager", fullgraph=True)
    try:
        return generated(max_new_tokens=4)
    finally:
        del model.forward


def compiled_whole() -> list[list[int]]:
    """With all of `generate` compiled, our code in the middle of it."""
    torch.compiler.reset()
    generate = model.generate
    model.generate = torch.compile(generate, backend="eager")
    try:
        return generated(max_new_tokens=4)
    finally:
        del model.generate


def broken(hook: str) -> Callable[[], Any]:
    """One piece of ours raises whenever it is called."""

    def fault(*_: object, **__: object) -> None:
        raise TypeError("ours")

    def run() -> list[Any]:
        kept = getattr(transformers, hook)
        setattr(transformers, hook, fault)
        try:
            return [generated(), generated(batch), outcome(lambda: generated(**stopping()))]
        finally:
            setattr(transformers, hook, kept)

    return run


def stopping() -> dict[str, Any]:
    return {"stopping_criteria": asking(3, RuntimeError("enough"))}


WAYS: dict[str, Callable[[], Any]] = {
    "plain": generated,
    "one": lambda: generated(max_new_tokens=1),
    "sampled": lambda: generated(do_sample=True, temperature=2.0),
    "watched": watched,
    "streamer": lambda: generated(streamer=Streamer(100)),
    "streamer raises": lambda: generated(streamer=Streamer(4)),
    "streamed": streamed,
    "batch": lambda: generated(
        batch, do_sample=True, temperature=2.0, eos_token_id=SOME_END, max_new_tokens=20
    ),
    "returned": lambda: generated(num_return_sequences=3, do_sample=True, temperature=2.0),
    "criterion": lambda: generated(stopping_criteria=asking(3)),
    "criterion raises": lambda: generated(**stopping()),
    "interrupted": lambda: generated(stopping_criteria=asking(3, KeyboardInterrupt())),
    "failing": failing,
    "refused": lambda: generated(nonsense=1),
    "beams": lambda: generated(num_beams=3),
    "drafted": lambda: generated(assistant_model=draft),
    "looked up": lambda: generated(prompt_lookup_num_tokens=3),
    "prefix": with_a_prefix,
    "chunks": lambda: generated(prefill_chunk_size=128),
    "static": lambda: generated(cache_implementation="static"),
    "no cache": lambda: generated(use_cache=False),
    "compiled": compiled,
    "compiled whole": compiled_whole,
    "side by side": side_by_side,
    **{f"broken {hook}": broken(hook) for hook in HOOKS},
}


def outcome(run: Callable[[], Any]) -> Any:
    """What comes of a run under a seed."""
    torch.manual_seed(1)
    try:
        return run()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what came of it
        return repr(error)


def told(run: Callable[[], Any]) -> dict[str, Any]:
    """A run without us and one with us."""
    plain = outcome(run)
    seen.clear()
    before = sum(faults().values())
    instrumentors = [Instrumentor(transformers.TARGETS), Instrumentor(threads.TARGETS)]
    for each in instrumentors:
        each.instrument()
    with recorded(clock=Clock(), settings=Settings(phase_min_ns=0)) as record:
        timed = outcome(run)
    for each in instrumentors:
        each.uninstrument()
    count = sum(faults().values()) - before
    left = [len(model._forward_hooks), len(model._forward_pre_hooks)]
    return {
        "plain": plain,
        "timed": timed,
        "spans": record.tree(),
        "seen": list(seen),
        "faults": count,
        "left": left,
    }


if __name__ == "__main__":
    print(json.dumps({name: told(run) for name, run in WAYS.items()}))
