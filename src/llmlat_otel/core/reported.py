"""What peers report of themselves in their responses; no position in our time, only amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from llmlat_otel.core.attributes import NS_PER_S, Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_semconv import attributes as names
from llmlat_semconv.aliases import (
    DYNAMO_RESPONSE,
    LLAMA_CPP,
    LOCAL_AI,
    OLLAMA,
    TGI,
    VLLM_RESPONSE,
    Producer,
    Surface,
)
from llmlat_semconv.phases import FACTS, Phase, duration_attribute
from llmlat_semconv.values import Boundary, Evidence

_NS_PER_MS: Final = 1_000_000
_MAX_NS: Final = 86_400_000 * _NS_PER_MS
"""No response takes a day: what is longer is no duration, or in another unit."""

_MAX_COUNT: Final = 2**63 - 1
"""What an attribute can hold."""

# ── In the body ──────────────────────────────────────────────────────────────────────────────────


class _Fields(NamedTuple):
    """What one producer's fields mean, by their names in the object that they stand in.

    Attributes:
        marks: Have to be there: what lacks one is somebody else's, and may count from other edges.
        durations: Field, phase, nanoseconds in its unit, evidence.
        counts: Field, attribute, how many to take away.
    """

    marks: tuple[str, ...]
    durations: tuple[tuple[str, Phase, int, Evidence], ...]
    counts: tuple[tuple[str, str, int], ...]


def _fields(producer: Producer, within: str = "") -> _Fields:
    """Those of a producer, of an object whose path begins all their names."""
    of_bodies = producer.on(Surface.RESPONSE_FIELD)
    return _Fields(
        tuple(each.key.removeprefix(within) for each in producer.marks),
        tuple(
            (each.key.removeprefix(within), each.phase, each.unit_ns, each.evidence)
            for each in of_bodies
            if each.phase is not None
        ),
        tuple(
            (each.key.removeprefix(within), each.attribute, each.less)
            for each in of_bodies
            if each.attribute
        ),
    )


_DYNAMO: Final = _fields(DYNAMO_RESPONSE, "nvext.timing.")
_LLAMA: Final = _fields(LLAMA_CPP, "timings.")
_LOCALAI: Final = _fields(LOCAL_AI, "usage.")
_OLLAMA: Final = _fields(OLLAMA)
_VLLM: Final = _fields(VLLM_RESPONSE, "metrics.")


def read_llama_timings(timings: Any, recorder: PhaseRecorder, facts: Attributes) -> None:
    """Read llama.cpp's `timings`: prefill and decode, queueing not among them.

    Args:
        timings: Milliseconds and token counts; `prompt_n` leaves out cached tokens. With
            `timings_per_token` they come in each chunk, and the last ones count.
        recorder: Is told the phases.
        facts: Is told the tokens.
    """
    _read(_LLAMA, timings, recorder, facts)


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


def read_vllm_metrics(metrics: Any, recorder: PhaseRecorder, facts: Attributes) -> None:
    """Read vLLM's `metrics` (`--enable-per-request-metrics`): queue, prefill and decode.

    Args:
        metrics: Milliseconds; null where it was not reached, or where several sequences share them.
            With one token alone decode has no length.
        recorder: Is told the phases.
        facts: Is told the tokens; there are none.
    """
    _read(_VLLM, metrics, recorder, facts, zero_is_unset=False)


def read_dynamo_timing(timing: Any, recorder: PhaseRecorder, facts: Attributes) -> None:
    """Read Dynamo's `nvext.timing`, which is there where it was asked for: how long KV travelled.

    Args:
        timing: Milliseconds, as the router sees them.
        recorder: Is told the phases.
        facts: Is told the tokens; there are none.
    """
    _read(_DYNAMO, timing, recorder, facts)


def read_localai_timings(usage: Any, recorder: PhaseRecorder, facts: Attributes) -> None:
    """Read what LocalAI adds to `usage` (`Extra-Usage`): prefill and decode, in milliseconds."""
    _read(_LOCALAI, usage, recorder, facts)


def read_ollama_durations(said: Any, recorder: PhaseRecorder, facts: Attributes) -> None:
    """Read what Ollama's last chunk says of its time: load, prefill and decode.

    The wait for a slot is in `total_duration` alone.

    Args:
        said: Nanoseconds and token counts. `load_duration` ends when a runner is at hand, which may
            have been loaded long since or have been waited for: at most so long was loaded. What
            `prompt_eval_count` counts depends on the version: what was computed, or all.
        recorder: Is told the phases.
        facts: Is told the tokens.
    """
    _read(_OLLAMA, said, recorder, facts)


def _read(
    fields: _Fields,
    said: Any,
    recorder: PhaseRecorder,
    facts: Attributes,
    *,
    zero_is_unset: bool = True,
) -> None:
    """Read what a producer's fields say; most are 0 where what they count was never reached."""
    if not isinstance(said, Mapping) or not all(each in said for each in fields.marks):
        return
    for key, phase, unit_ns, evidence in fields.durations:
        duration_ns = _amount_ns(said.get(key), unit_ns)
        if duration_ns or (duration_ns == 0 and not zero_is_unset):
            recorder.report(phase, duration_ns, evidence)
    for key, attribute, less in fields.counts:
        count = token_count(said.get(key))
        if count is not None and count >= less:
            facts[attribute] = count - less


def token_count(count: Any) -> int | None:
    """A number of tokens as it was sent; None for what is none."""
    # True is an int, but no number.
    return count if type(count) is int and 0 <= count <= _MAX_COUNT else None


def _amount_ns(amount: Any, unit_ns: int) -> int | None:
    """A duration as it was sent; None for what is none."""
    # A comparison with NaN is false; True is an int, but no number.
    is_duration = type(amount) in {int, float} and 0 <= amount <= _MAX_NS // unit_ns
    return round(amount * unit_ns) if is_duration else None


# ── In the headers ───────────────────────────────────────────────────────────────────────────────

_UPSTREAMS: Final = (
    "x-bifrost-upstream-latency-ms",
    "x-envoy-upstream-service-time",
    "x-kong-upstream-latency",
)
_TGI_MARKS: Final = frozenset(each.key for each in TGI.marks)
_TGI_PHASES: Final = tuple(
    (each.phase, each.key, each.evidence)
    for each in TGI.on(Surface.RESPONSE_HEADER)
    if each.phase is not None
)
_TGI_TOTAL: Final = "x-total-time"
_OPENAI_PROCESSING: Final = "openai-processing-ms"
_KONG_PROXY: Final = "x-kong-proxy-latency"
_SERVER_TIMING: Final = "server-timing"

_READ: Final = {
    name.encode(): name
    for name in (
        *_UPSTREAMS,
        *_TGI_MARKS,
        *(name for _, name, _ in _TGI_PHASES),
        *(_TGI_TOTAL, _OPENAI_PROCESSING, _KONG_PROXY, _SERVER_TIMING),
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

    TGI is known by what it says of its hardware and of checking the request: `x-queue-time` is a
    name of many.
    """
    processing_ns = _duration_ns(said.get(_OPENAI_PROCESSING))
    if said.keys() >= _TGI_MARKS:
        for phase, name, evidence in _TGI_PHASES:
            duration_ns = _duration_ns(said.get(name))
            if duration_ns is not None:
                recorder.report(phase, duration_ns, evidence)
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
    return _amount_ns(float(digits), _NS_PER_MS)


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
