"""What engines report of themselves in their responses; no position in our time, only amounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence

_NS_PER_MS: Final = 1_000_000

_LLAMA_PHASES: Final = ((Phase.PREFILL, "prompt_ms"), (Phase.DECODE, "predicted_ms"))
_LLAMA_TOKENS: Final = (
    (names.LLMLAT_PREFILL_COMPUTED_TOKENS, "prompt_n", 0),
    (names.LLMLAT_PREFILL_CACHED_TOKENS, "cache_n", 0),
    # Decode begins when the first token has been sampled.
    (names.LLMLAT_DECODE_TOKENS, "predicted_n", 1),
)


def read_llama_timings(
    timings: Mapping[str, Any], recorder: PhaseRecorder, facts: Attributes
) -> None:
    """Read llama.cpp's `timings`: prefill and decode, queueing not among them.

    Args:
        timings: Milliseconds and token counts; `prompt_n` leaves out cached tokens. With
            `timings_per_token` they come in each chunk, and the last ones count.
        recorder: Is told the phases.
        facts: Is told the tokens.
    """
    for phase, key in _LLAMA_PHASES:
        duration_ms = timings.get(key)
        if isinstance(duration_ms, (int, float)) and duration_ms >= 0:
            recorder.report(phase, round(duration_ms * _NS_PER_MS), Evidence.REPORTED)
    for name, key, before_decode in _LLAMA_TOKENS:
        count = timings.get(key)
        if isinstance(count, int) and count >= before_decode:
            facts[name] = count - before_decode


def read_llama_progress(at_ns: int, recorder: PhaseRecorder) -> None:
    """Read llama.cpp's first `prompt_progress`: it is sent when a slot has taken the request.

    What lies between the last request byte and it bounds the queue from above.

    Args:
        at_ns: When the first chunk with progress arrived.
        recorder: Knows when the request was sent, and is told the phase.
    """
    sent_ns = recorder.request_sent_ns()
    if sent_ns is not None and not recorder.has_report(Phase.QUEUE):
        recorder.report(Phase.QUEUE, at_ns - sent_ns, Evidence.BOUNDED)
