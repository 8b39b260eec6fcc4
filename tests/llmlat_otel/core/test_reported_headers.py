"""What peers and gateways say of themselves in the head of a response."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor, Reported
from llmlat_otel.core.reported import read_headers
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, duration_attribute
from llmlat_semconv.values import Evidence

PROCESSING = names.LLMLAT_REPORTED_PROCESSING_DURATION
OVERHEAD = names.LLMLAT_REPORTED_OVERHEAD_DURATION
QUEUE = duration_attribute(Phase.QUEUE).removesuffix(".duration")
WAIT = duration_attribute(Phase.WAIT).removesuffix(".duration")
TOOL = duration_attribute(Phase.TOOL).removesuffix(".duration")


def read(headers: Any) -> tuple[dict[Phase, tuple[float, str]], Attributes]:
    """Phases in ms with their evidence, and facts."""
    marks = PhaseRecorder(0, Anchor(0, 0, 0), 1)
    facts: Attributes = {}
    read_headers(headers, marks, facts)
    return {
        each.phase: (each.duration_ns / 1_000_000, each.evidence.value)
        for each in marks.finish(1).reported
    }, facts


TGI = {
    "x-compute-type": "gpu+optimized",
    "x-total-time": "1203",
    "x-validation-time": "2",
    "x-queue-time": "301",
    "x-inference-time": "900",
    "x-time-per-token": "30",
}


@pytest.mark.parametrize(
    ("headers", "phases", "facts"),
    [
        ({"openai-processing-ms": "412"}, {}, {PROCESSING: 0.412}),
        (
            TGI,
            {Phase.TOKENIZE: (2, "reported"), Phase.QUEUE: (301, "reported")},
            {PROCESSING: 1.203},
        ),
        ({**TGI, "x-queue-time": "soon"}, {Phase.TOKENIZE: (2, "reported")}, {PROCESSING: 1.203}),
        ({"x-queue-time": "301", "x-total-time": "1203"}, {}, {}),
        ({"x-envoy-upstream-service-time": "37"}, {Phase.UPSTREAM: (37, "bounded")}, {}),
        (
            {"X-Kong-Upstream-Latency": "40", "X-Kong-Proxy-Latency": "3"},
            {Phase.UPSTREAM: (40, "bounded")},
            {OVERHEAD: 0.003},
        ),
        ({"x-bifrost-upstream-latency-ms": "41.125"}, {Phase.UPSTREAM: (41.125, "bounded")}, {}),
        (
            {"x-envoy-upstream-service-time": "37", "X-Kong-Upstream-Latency": "40"},
            {Phase.UPSTREAM: (40, "bounded")},
            {},
        ),
        ({"x-bifrost-provider": "openai", "date": "now"}, {}, {}),
        ({}, {}, {}),
    ],
    ids=[
        "OpenAI",
        "TGI: inference is two phases and none",
        "TGI, in part",
        "names that TGI has not to itself",
        "Envoy",
        "Kong",
        "Bifrost",
        "a gateway before another: the outer one",
        "nothing of time",
        "nothing",
    ],
)
def test_what_is_known_of_each(
    headers: dict[str, str], phases: dict[Phase, tuple[float, str]], facts: Attributes
) -> None:
    assert read(headers) == (phases, facts)
    assert read(httpx2.Headers(headers)) == (phases, facts)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-1", "+1", "1e3", "0x10", "NaN", "inf", "1_000", "1,5", "1 2", "1ms", ".5"),
        *("1.", "١٢", "99999999999999999999", "86400001", "12, 12", '"12"'),
    ],
)
def test_what_is_no_duration_is_absent(text: str) -> None:
    headers = {"openai-processing-ms": text, "x-envoy-upstream-service-time": text}
    assert read(headers) == ({}, {})


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), (" 12\t", 0.012), ("0.5", 0.0005)])
def test_what_is_a_duration(text: str, seconds: float) -> None:
    assert read({"openai-processing-ms": text}) == ({}, {PROCESSING: seconds})


def test_a_header_that_is_sent_twice_says_nothing() -> None:
    twice = httpx2.Headers([("openai-processing-ms", "1"), ("OpenAI-Processing-MS", "2")])
    assert read(twice) == ({}, {})


def test_what_an_attempt_before_it_was_told_is_forgotten() -> None:
    facts: Attributes = {PROCESSING: 1.0, OVERHEAD: 1.0, names.GEN_AI_RESPONSE_ID: "c-1"}
    read_headers({}, PhaseRecorder(0, Anchor(0, 0, 0), 1), facts)
    assert facts == {names.GEN_AI_RESPONSE_ID: "c-1"}


@pytest.mark.parametrize(
    ("header", "queue_ms"),
    [
        (f"{QUEUE};dur=12.5", 12.5),
        (f'cache;desc="a, {QUEUE};dur=1";dur=2 , {QUEUE} ; desc="\\"" ; DUR="12.5",', 12.5),
        (f"{QUEUE};dur=1;dur=2", 1),
        (f"db;dur=53, {QUEUE};dur=0", 0),
        ("queue;dur=12.5", None),
        (QUEUE, None),
        (f"{QUEUE};dur", None),
        (f"{QUEUE};dur=", None),
        (f"{QUEUE};dur=-1", None),
        (f"{QUEUE};dur=1, {QUEUE};dur=2", None),
        (f"{QUEUE};dur=1, {QUEUE}", None),
        (f"{QUEUE.upper()};dur=1", None),
        (f"{WAIT};dur=1, {TOOL};dur=1", None),
        (f'x;desc="never closed, {QUEUE};dur=1', None),
        (f"x;=, {QUEUE};dur=1", None),
        (f"x y, {QUEUE};dur=1", None),
        (f"{QUEUE};dur=1" + ", pad" * 2_000, None),
    ],
    ids=[
        "plain",
        "spaces, quotes and other metrics",
        "the first of two parameters",
        "a real 0",
        "a queue that is no phase of ours",
        "no duration",
        "a duration without a value",
        "an empty one",
        "a negative one",
        "named twice",
        "named twice, once without a duration",
        "names have a case",
        "phases that are no peer's",
        "within a quote that is never closed",
        "after a fault",
        "after another",
        "too long",
    ],
)
def test_server_timing(header: str, queue_ms: float | None) -> None:
    phases = {} if queue_ms is None else {Phase.QUEUE: (queue_ms, "reported")}
    assert read({"Server-Timing": header}) == (phases, {})


def test_server_timing_may_come_in_several_lines() -> None:
    prefill = QUEUE.replace(Phase.QUEUE.value, Phase.PREFILL.value)
    lines = httpx2.Headers(
        [("server-timing", f"{QUEUE};dur=1"), ("server-timing", f"{prefill};dur=2")]
    )
    marks = PhaseRecorder(0, Anchor(0, 0, 0), 1)
    read_headers(lines, marks, {})
    assert marks.finish(1).reported == (
        Reported(Phase.QUEUE, 1_000_000, Evidence.REPORTED),
        Reported(Phase.PREFILL, 2_000_000, Evidence.REPORTED),
    )
