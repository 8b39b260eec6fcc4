"""A small adviser as spans: a retrieval, a call of a gateway's engine, a tool, a reported call.

invoke_agent adviser  0 ─────────────────────────────────────────────────────────── 2000 ms
retrieval orders     20 ── 220
retrieval account    20 ─ 120
chat gemma                 240 ─────────── 840            wait 250-600, stream 620-820
engine chat                (another clock, no overlap on raw stamps)
execute_tool                                840 ── 1100
chat gemma                                         1120 ───────────────────── 1980
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llmlat_processor.model import CLIENT, INTERNAL, SERVER, AttributeValue, Resource, Span
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import (
    Phase,
    reported_duration_attribute,
    reported_evidence_attribute,
)
from llmlat_semconv.spans import phase_span_name
from llmlat_semconv.values import ContentKind, Evidence, OperationName
from llmlat_semconv.version import CONTRACT_VERSION

MS: Final = 1_000_000
TRACE_ID: Final = bytes.fromhex("0af7651916cd43dd8448eb211c80319c")
START_NS: Final = 1_764_421_200_000_000_000


def resource(service: str, host: str) -> Resource:
    """A process of its own on a host with a clock of its own."""
    said: dict[str, AttributeValue] = {names.SERVICE_NAME: service, names.HOST_ID: host}
    return Resource(said, service=service, process=f"{host}/{service}", domain=host, weak=False)


APP: Final = resource("adviser", "laptop")
ENGINE: Final = resource("vllm", "gpu-1")


def span(
    number: int,
    parent: int,
    name: str,
    start_ms: float,
    end_ms: float,
    where: Resource = APP,
    *,
    kind: int = INTERNAL,
    attributes: Mapping[str, AttributeValue] = {},
    is_error: bool = False,
    trace_id: bytes = TRACE_ID,
) -> Span:
    """A span with a small number for an id; parent 0 is none; times in ms from the start."""
    return Span(
        trace_id,
        number.to_bytes(8, "big"),
        parent.to_bytes(8, "big") if parent else b"",
        name,
        kind,
        START_NS + round(start_ms * MS),
        START_NS + round(end_ms * MS),
        where,
        attributes=dict(attributes),
        attribute_count=len(attributes),
        is_error=is_error,
    )


def phase(
    number: int, parent: int, name: Phase, start_ms: float, end_ms: float, where: Resource = APP
) -> Span:
    """A phase span of the operation `parent`."""
    said = {names.LLMLAT_PHASE_NAME: name.value}
    return span(number, parent, phase_span_name(name), start_ms, end_ms, where, attributes=said)


def adviser_spans() -> list[Span]:
    """The spans of the picture above."""
    return [
        span(1, 0, "invoke_agent adviser", 0, 2000, attributes=_does(OperationName.INVOKE_AGENT)),
        span(2, 1, "retrieval orders", 20, 220, attributes=_does(OperationName.RETRIEVAL)),
        span(3, 1, "retrieval account", 20, 120, attributes=_does(OperationName.RETRIEVAL)),
        *_first_call(),
        span(20, 1, "execute_tool get_orders", 840, 1100, attributes=_tool("get_orders")),
        *_second_call(),
    ]


def _does(operation: OperationName) -> dict[str, AttributeValue]:
    return {names.GEN_AI_OPERATION_NAME: operation.value}


def _tool(name: str) -> dict[str, AttributeValue]:
    return {**_does(OperationName.EXECUTE_TOOL), names.GEN_AI_TOOL_NAME: name}


def _inference(first_content_s: float) -> dict[str, AttributeValue]:
    return {
        **_does(OperationName.CHAT),
        names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
        names.LLMLAT_BOUNDARY_NAME: "client",
        names.GEN_AI_REQUEST_STREAM: True,
        names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT: first_content_s,
        names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND: ContentKind.TEXT.value,
    }


def _first_call() -> list[Span]:
    """The engine's clock is 7 s ahead, so raw stamps put its span past the end of the trace."""
    engine = {
        names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
        names.LLMLAT_BOUNDARY_NAME: "engine",
    }
    return [
        span(10, 1, "chat gemma", 240, 840, kind=CLIENT, attributes=_inference(0.38)),
        phase(11, 10, Phase.SEND, 240, 250),
        phase(12, 10, Phase.WAIT, 250, 620),
        phase(13, 10, Phase.STREAM, 620, 820),
        phase(14, 10, Phase.FINALIZE, 820, 840),
        span(15, 10, "engine chat", 7000, 7540, ENGINE, kind=SERVER, attributes=engine),
        phase(16, 15, Phase.QUEUE, 7000, 7150, ENGINE),
        phase(17, 15, Phase.PREFILL, 7150, 7330, ENGINE),
        phase(18, 15, Phase.DECODE, 7330, 7540, ENGINE),
    ]


def _second_call() -> list[Span]:
    """No engine span: the peer reported its phases, the queue only as an upper bound."""
    reported: dict[str, AttributeValue] = {
        reported_duration_attribute(Phase.QUEUE): 0.1,
        reported_evidence_attribute(Phase.QUEUE): Evidence.BOUNDED.value,
        reported_duration_attribute(Phase.PREFILL): 0.15,
        reported_duration_attribute(Phase.DECODE): 0.55,
    }
    said = _inference(0.28) | reported
    return [
        span(30, 1, "chat gemma", 1120, 1980, kind=CLIENT, attributes=said),
        phase(31, 30, Phase.SEND, 1120, 1130),
        phase(32, 30, Phase.WAIT, 1130, 1400),
        phase(33, 30, Phase.STREAM, 1400, 1970),
        phase(34, 30, Phase.FINALIZE, 1970, 1980),
    ]
