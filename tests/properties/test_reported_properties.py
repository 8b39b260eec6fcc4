"""Whatever a peer says of itself: nothing is raised, and no duration is negative or endless."""

from __future__ import annotations

import math
import time
from typing import Any, Final

import httpx2
from hypothesis import given
from hypothesis import strategies as st

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor
from llmlat_otel.core.reported import (
    read_headers,
    read_llama_timings,
    read_localai_timings,
    read_vllm_metrics,
)
from llmlat_semconv.phases import Phase, duration_attribute

NAMES: Final = (
    *("openai-processing-ms", "server-timing", "x-compute-type"),
    *("x-total-time", "x-validation-time", "x-queue-time"),
    *("x-envoy-upstream-service-time", "x-kong-upstream-latency", "x-kong-proxy-latency"),
    "x-bifrost-upstream-latency-ms",
)
METRICS: Final = [duration_attribute(phase).removesuffix(".duration") for phase in Phase]
NUMBERS: Final = st.one_of(st.integers(), st.floats(), st.text(), st.booleans()).map(str)
TIMING: Final = st.lists(
    st.one_of(
        st.sampled_from([*METRICS, ";dur=", ";", ",", '"', "\\", " ", "=", "dur"]),
        NUMBERS,
        st.text(),
    )
).map("".join)
DAY_S: Final = 86_400


def account() -> tuple[PhaseRecorder, Attributes]:
    return PhaseRecorder(0, Anchor(0, 0, 0), 1), {}


def assert_sane(marks: PhaseRecorder, facts: Attributes) -> None:
    for each in marks.finish(1).reported:
        assert type(each.duration_ns) is int
        assert 0 <= each.duration_ns <= DAY_S * 1_000_000_000
    for value in facts.values():
        assert isinstance(value, (int, float))
        assert math.isfinite(value)
        assert value >= 0


@given(st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text()), st.one_of(NUMBERS, TIMING)))
def test_any_headers(headers: dict[str, str]) -> None:
    marks, facts = account()
    read_headers(headers, marks, facts)
    assert_sane(marks, facts)


@given(st.lists(st.tuples(st.sampled_from([each.encode() for each in NAMES]), st.binary())))
def test_any_bytes(lines: list[tuple[bytes, bytes]]) -> None:
    marks, facts = account()
    read_headers(httpx2.Headers(lines), marks, facts)
    assert_sane(marks, facts)


@given(TIMING)
def test_any_server_timing(header: str) -> None:
    marks, facts = account()
    read_headers({"server-timing": header}, marks, facts)
    assert_sane(marks, facts)


@given(
    st.sampled_from(["a", " ", ";", ",", '"', "\\", ";a", ";a=", ';a="b"', "a,", "\t;", '"\\"']),
    st.sampled_from(["", "\x00", '"', ";", "="]),
)
def test_no_server_timing_takes_long(part: str, end: str) -> None:
    marks, facts = account()
    header = (part * 8_192)[:8_191] + end
    before_ns = time.process_time_ns()
    read_headers({"server-timing": header}, marks, facts)
    assert time.process_time_ns() - before_ns < 1_000_000_000
    assert_sane(marks, facts)


VALUES: Final = st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.none())
KEYS: Final = st.sampled_from(
    [
        *("prompt_ms", "predicted_ms", "prompt_n", "cache_n", "predicted_n"),
        *("queue_time_ms", "time_to_first_token_ms", "generation_time_ms"),
        *("timing_prompt_processing", "timing_token_generation"),
    ]
)


@given(st.dictionaries(KEYS, VALUES))
def test_any_timings_in_the_body(said: dict[str, Any]) -> None:
    marks, facts = account()
    read_llama_timings(said, marks, facts)
    read_vllm_metrics(said, marks, facts)
    read_localai_timings(said, marks, facts)
    assert_sane(marks, facts)


@given(st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_anything_in_their_place(said: Any) -> None:
    marks, facts = account()
    read_llama_timings(said, marks, facts)
    read_vllm_metrics(said, marks, facts)
    assert_sane(marks, facts)
