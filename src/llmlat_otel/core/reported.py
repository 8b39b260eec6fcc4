"""What peers report of themselves in their responses; no position in our time, only amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from llmlat_otel.core.attributes import NS_PER_S, Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import FACTS, Phase, duration_attribute
from llmlat_semconv.values import Boundary, Evidence

_NS_PER_MS: Final = 1_000_000
_MAX_MS: Final = 86_400_000
"""No response takes a day: what is longer is no duration, or in another unit."""

_MAX_COUNT: Final = 2**63 - 1
"""What an attribute can hold."""

# ── In the body ──────────────────────────────────────────────────────────────────────────────────

_LLAMA_PHASES: Final = ((Phase.PREFILL, "prompt_ms"), (Phase.DECODE, "predicted_ms"))
_LLAMA_TOKENS: Final = (
    (names.LLMLAT_PREFILL_COMPUTED_TOKENS, "prompt_n", 0),
    (names.LLMLAT_PREFILL_CACHED_TOKENS, "cache_n", 0),
    # Decode begins when the first token has been sampled.
    (names.LLMLAT_DECODE_TOKENS, "predicted_n", 1),
)
_VLLM_PHASES: Final = (
    (Phase.QUEUE, "queue_time_ms"),
    # From when it was scheduled, in spite of its name: queueing is not in it.
    (Phase.PREFILL, "time_to_first_token_ms"),
    (Phase.DECODE, "generation_time_ms"),
)
_LOCALAI_PHASES: Final = (
    (Phase.PREFILL, "timing_prompt_processing"),
    (Phase.DECODE, "timing_token_generation"),
)


def read_llama_timings(timings: Any, recorder: PhaseRecorder, facts: Attributes) -> None:
    """Read llama.cpp's `timings`: prefill and decode, queueing not among them.

    Args:
        timings: Milliseconds and token counts; `prompt_n` leaves out cached tokens. With
            `timings_per_token` they come in each chunk, and the last ones count.
        recorder: Is told the phases.
        facts: Is told the tokens.
    """
    if not isinstance(timings, Mapping):
        return
    _report_each(_LLAMA_PHASES, timings, recorder)
    for name, key, before_decode in _LLAMA_TOKENS:
        count = token_count(timings.get(key))
        if count is not None and count >= before_decode:
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


def read_vllm_metrics(metrics: Any, recorder: PhaseRecorder) -> None:
    """Read vLLM's `metrics` (`--enable-per-request-metrics`): queue, prefill and decode.

    Args:
        metrics: Milliseconds; null where several sequences share them. What lacks one of the
            names is somebody else's, and may count from other edges.
        recorder: Is told the phases.
    """
    if isinstance(metrics, Mapping) and all(key in metrics for _, key in _VLLM_PHASES):
        _report_each(_VLLM_PHASES, metrics, recorder)


def read_localai_timings(usage: Mapping[str, Any], recorder: PhaseRecorder) -> None:
    """Read what LocalAI adds to `usage` (`Extra-Usage`): prefill and decode, in milliseconds."""
    _report_each(_LOCALAI_PHASES, usage, recorder)


def token_count(count: Any) -> int | None:
    """A number of tokens as it was sent; None for what is none."""
    # True is an int, but no number.
    return count if type(count) is int and 0 <= count <= _MAX_COUNT else None


def _report_each(
    phases: tuple[tuple[Phase, str], ...], said: Mapping[str, Any], recorder: PhaseRecorder
) -> None:
    for phase, key in phases:
        duration_ms: Any = said.get(key)
        # A comparison with NaN is false.
        if type(duration_ms) in {int, float} and 0 <= duration_ms <= _MAX_MS:
            recorder.report(phase, round(duration_ms * _NS_PER_MS), Evidence.REPORTED)


# ── In the headers ───────────────────────────────────────────────────────────────────────────────

_UPSTREAMS: Final = (
    "x-bifrost-upstream-latency-ms",
    "x-envoy-upstream-service-time",
    "x-kong-upstream-latency",
)
_TGI: Final = "x-compute-type"
_TGI_PHASES: Final = ((Phase.TOKENIZE, "x-validation-time"), (Phase.QUEUE, "x-queue-time"))
_TGI_TOTAL: Final = "x-total-time"
_OPENAI_PROCESSING: Final = "openai-processing-ms"
_KONG_PROXY: Final = "x-kong-proxy-latency"
_SERVER_TIMING: Final = "server-timing"

_READ: Final = {
    name.encode(): name
    for name in (
        *_UPSTREAMS,
        *(name for _, name in _TGI_PHASES),
        *(_TGI, _TGI_TOTAL, _OPENAI_PROCESSING, _KONG_PROXY, _SERVER_TIMING),
    )
}
"""Headers that say something, as they come over the wire."""

_MILLISECONDS: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")


def read_headers(headers: Mapping[str, str], recorder: PhaseRecorder, facts: Attributes) -> None:
    """Read what the peer, and the gateways before it, say in the head of a response.

    Args:
        headers: Of the response, whatever the case of their names.
        recorder: Is told phases of the contract.
        facts: Is told what is no phase of it, for the operation span; in seconds.
    """
    for name in (
        names.LLMLAT_REPORTED_PROCESSING_DURATION,
        names.LLMLAT_REPORTED_OVERHEAD_DURATION,
    ):
        facts.pop(name, None)  # Said of an attempt before this one.
    said = _known(headers)
    if said:
        _read_gateways(said, recorder, facts)
        _read_engines(said, recorder, facts)
        if _SERVER_TIMING in said:
            _read_server_timing(said[_SERVER_TIMING], recorder)


def _known(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that say something, by their names in lower case.

    They are walked once as httpx keeps them: each look-up by name walks them all.
    """
    raw = getattr(headers, "raw", None)
    lines = (
        [(key.encode("latin-1", "replace"), value) for key, value in headers.items()]
        if raw is None
        else raw
    )
    said: dict[str, str] = {}
    for key, value in lines:
        name = _READ.get(key.lower())
        if name is not None:
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            said[name] = f"{said[name]}, {text}" if name in said else text
    return said


def _read_gateways(said: Mapping[str, str], recorder: PhaseRecorder, facts: Attributes) -> None:
    """Each gateway's `upstream` holds those behind it: the longest is the outermost one's.

    They count from when they turned to their upstream, connecting and retries included, up to the
    head of its response: an upper bound.
    """
    upstreams = [each for name in _UPSTREAMS if (each := _duration_ns(said.get(name))) is not None]
    if upstreams:
        recorder.report(Phase.UPSTREAM, max(upstreams), Evidence.BOUNDED)
    overhead_ns = _duration_ns(said.get(_KONG_PROXY))
    if overhead_ns is not None:
        facts[names.LLMLAT_REPORTED_OVERHEAD_DURATION] = overhead_ns / NS_PER_S


def _read_engines(said: Mapping[str, str], recorder: PhaseRecorder, facts: Attributes) -> None:
    """OpenAI's and TGI's; the latter's `x-inference-time` is prefill and decode, and is neither.

    TGI is known by what it says of its hardware: `x-queue-time` is a name of many.
    """
    processing_ns = _duration_ns(said.get(_OPENAI_PROCESSING))
    if _TGI in said:
        for phase, name in _TGI_PHASES:
            duration_ns = _duration_ns(said.get(name))
            if duration_ns is not None:
                recorder.report(phase, duration_ns, Evidence.REPORTED)
        if processing_ns is None:
            processing_ns = _duration_ns(said.get(_TGI_TOTAL))
    if processing_ns is not None:
        facts[names.LLMLAT_REPORTED_PROCESSING_DURATION] = processing_ns / NS_PER_S


def _duration_ns(milliseconds: str | None) -> int | None:
    """A decimal number of milliseconds; None for whatever else is there."""
    if milliseconds is None:
        return None
    digits = milliseconds.strip(" \t")
    if _MILLISECONDS.fullmatch(digits) is None:
        return None
    duration_ms = float(digits)
    return round(duration_ms * _NS_PER_MS) if duration_ms <= _MAX_MS else None


# ── Server-Timing (W3C): a list of `name;dur=1.5;desc="..."` ─────────────────────────────────────

_MAX_SERVER_TIMING: Final = 8192
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE: Final = rf'(?:{_TOKEN}|"(?:[^"\\]|\\.)*")'
_PARAMETER: Final = rf"[ \t]*;[ \t]*({_TOKEN})(?:[ \t]*=[ \t]*({_VALUE}))?"
_METRIC: Final = re.compile(rf"[ \t,]*({_TOKEN})((?:{_PARAMETER})*)[ \t]*(?:,|$)", re.DOTALL)
_PARAMETERS: Final = re.compile(_PARAMETER, re.DOTALL)

_TIMED_PHASES: Final = {
    duration_attribute(phase).removesuffix(".duration"): phase
    for phase, facts in FACTS.items()
    if facts.boundary in {Boundary.GATEWAY, Boundary.ENGINE}
}
"""Names under which a peer speaks of the contract's phases: whose `queue` is that of others?"""


def _read_server_timing(header: str, recorder: PhaseRecorder) -> None:
    """Read the phases that are named as such; what is named twice is of two, and neither's."""
    found: dict[Phase, list[int | None]] = {}
    for name, duration_ns in _metrics(header):
        phase = _TIMED_PHASES.get(name)
        if phase is not None:
            found.setdefault(phase, []).append(duration_ns)
    for phase, durations_ns in found.items():
        if len(durations_ns) == 1 and durations_ns[0] is not None:
            recorder.report(phase, durations_ns[0], Evidence.REPORTED)


def _metrics(header: str) -> Iterator[tuple[str, int | None]]:
    """Each metric's name and duration, up to the first fault in what was sent."""
    position = 0
    while position < len(header) <= _MAX_SERVER_TIMING:
        metric = _METRIC.match(header, position)
        if metric is None:
            return
        yield metric[1], _dur(metric[2])
        position = metric.end()


def _dur(parameters: str) -> int | None:
    for name, value in _PARAMETERS.findall(parameters):
        if name.lower() == "dur":  # The first one counts.
            return _duration_ns(value.strip('"'))
    return None
