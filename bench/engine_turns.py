"""Turns of one vLLM in one process, with us in it and without: µs of CPU per token, as JSON.

    python -m bench.engine_turns MODEL ROUNDS ANSWER

Runs in the environment of the engine. Each round has a short turn of each kind, begun with another
one each time. What is made in a turn is exported within it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from llmlat_otel import instrument, uninstrument
from llmlat_otel.core.runtime import Runtime, running, runtime

ALONE: Final = "vLLM alone"
TIMED: Final = "with the plugin"
STEPS: Final = "with each step"

_AT_A_TIME: Final = 8
_PROMPT: Final = 60
_VOCABULARY: Final = 500
_WARM_UP: Final = 3


def main(model: str, rounds: int, answer: int) -> None:
    """Take the turns, and tell what each took."""
    # The scheduler beside the rest: what is between two processes is waited for in busy loops.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    from vllm import LLM, SamplingParams  # noqa: PLC0415 - it reads the variable as it is imported

    engine = LLM(
        model=model,
        load_format="dummy",
        dtype="float32",
        enforce_eager=True,
        max_num_seqs=_AT_A_TIME,
        max_model_len=512,
        block_size=32,
        enable_prefix_caching=False,
        disable_log_stats=False,
    )
    asked = SamplingParams(temperature=0, max_tokens=answer, ignore_eos=True)

    def generate(number: int) -> int:
        prompts = [{"prompt_token_ids": _prompt(number + row)} for row in range(_AT_A_TIME)]
        answers: list[Any] = engine.generate(prompts, asked, use_tqdm=False)
        return sum(len(each.outputs[0].token_ids) for each in answers)

    print(json.dumps(_taken(generate, rounds)), flush=True)


def _prompt(first: int) -> list[int]:
    return [2 + (first + place) % _VOCABULARY for place in range(_PROMPT)]


def _taken(generate: Callable[[int], int], rounds: int) -> dict[str, list[float]]:
    turns = {ALONE: _alone, TIMED: _timed, STEPS: _with_steps}
    names = list(turns)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-_WARM_UP, rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            us = turns[name](lambda: _cpu_us(generate, number))  # noqa: B023 - called at once
            if number >= 0:
                taken[name].append(us)
    return taken


def _cpu_us(generate: Callable[[int], int], number: int) -> float:
    before_ns = time.process_time_ns()
    tokens = generate(number)
    provider: Any = runtime().emitter.their_provider()
    provider.force_flush()
    return (time.process_time_ns() - before_ns) / 1_000 / tokens


def _alone(turn: Callable[[], float]) -> float:
    return turn()


def _timed(turn: Callable[[], float]) -> float:
    instrument("vllm")
    try:
        return turn()
    finally:
        uninstrument()


def _with_steps(turn: Callable[[], float]) -> float:
    sdk = runtime()
    with running(Runtime(replace(sdk.settings, engine_steps=True), sdk.clock, sdk.emitter)):
        return _timed(turn)


def _export() -> None:
    """Spans go where the environment says, by a provider of the program's own."""
    from opentelemetry import trace  # noqa: PLC0415 - measured programs import what they use
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


if __name__ == "__main__":
    _export()
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
