"""A program that asks `LLM()` within a span, and writes the answers' tokens; vLLM's Python runs it.

    python offline.py MODEL agent|otel FILE

With `agent` the span is of our SDK, which says where spans go; with `otel` it is of a provider of
the program's own. Nothing else is said of either library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from vllm import LLM, SamplingParams

import llmlat_otel

PROMPTS = ([5, 6, 7, 8], list(range(10, 50)), list(range(100, 145)))


@contextmanager
def _own_span() -> Iterator[None]:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    with trace.get_tracer("offline").start_as_current_span("asker"):
        yield


def main(model: str, kind: str, file: str) -> None:
    """Ask everything at once."""
    llm = LLM(
        model=model,
        load_format="dummy",
        dtype="float32",
        enforce_eager=True,
        max_model_len=256,
        block_size=32,
    )
    how = SamplingParams(max_tokens=20, ignore_eos=True, temperature=0)
    with _own_span() if kind == "otel" else llmlat_otel.agent("asker"):
        told = llm.generate([{"prompt_token_ids": each} for each in PROMPTS], how, use_tqdm=False)
    Path(file).write_text(json.dumps([list(each.outputs[0].token_ids) for each in told]))


if __name__ == "__main__":
    main(*sys.argv[1:])
