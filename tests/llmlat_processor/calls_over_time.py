"""Traces of an app that calls an engine on another machine, minute after minute, as OTLP lines."""

from __future__ import annotations

import json
from collections.abc import Mapping

from llmlat_processor.model import CLIENT, SERVER, AttributeValue, Span
from llmlat_semconv import attributes as names
from llmlat_semconv.values import OperationName
from tests.llmlat_processor.adviser import ENGINE, MS, START_NS, span
from tests.llmlat_processor.otlp_lines import otlp_line

APP_CLOCK = "4f1c0d9e-app"
ENGINE_CLOCK = "9b7e2a51-engine"
APP_UP_NS = 3_600_000 * MS
"""How long the app's machine had been up when it all began."""


def one_call(number: int, at_ms: float, engine_ahead_ms: float, *, way_ms: float = 2) -> list[Span]:
    """A trace of a request of 200 ms whose callee works for 200 ms less both ways."""
    trace_id = number.to_bytes(16, "big")
    chat: Mapping[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: OperationName.CHAT.value}
    there, back = at_ms + way_ms + engine_ahead_ms, at_ms + 200 - way_ms + engine_ahead_ms
    return [
        span(1, 0, "chat", at_ms, at_ms + 200, kind=CLIENT, attributes=chat, trace_id=trace_id),
        span(2, 1, "serve", there, back, ENGINE, kind=SERVER, trace_id=trace_id),
    ]


def ten_minutes(*, step_ms: float = 0) -> list[str]:
    """A call every five seconds; the engine's clock gains 50 ppm, and may step after six minutes.

    Ways take 1 to 4 ms by turns.
    """
    lines = []
    for number in range(120):
        at_ms = number * 5_000.0
        ahead_ms = 5_000 + at_ms * 50e-6 + (step_ms if at_ms >= 360_000 else 0)
        lines.append(otlp_line(one_call(number + 1, at_ms, ahead_ms, way_ms=1 + number % 4)))
    return lines


def monotonic(line: str) -> str:
    """The same spans by an SDK that tells its monotonic clocks; the engine's began with them."""
    document = json.loads(line)
    for resource, domain, up_ns in zip(
        document["resourceSpans"], (APP_CLOCK, ENGINE_CLOCK), (APP_UP_NS, 0), strict=True
    ):
        for each in resource["scopeSpans"][0]["spans"]:
            reading = int(each["startTimeUnixNano"]) - START_NS + up_ns
            each["attributes"] += [
                {"key": names.LLMLAT_CLOCK_DOMAIN_ID, "value": {"stringValue": domain}},
                {
                    "key": names.LLMLAT_CLOCK_MONOTONIC_START,
                    "value": {"intValue": str(reading)},
                },
            ]
    return json.dumps(document)
