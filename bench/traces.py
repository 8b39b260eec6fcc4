"""Traces as OTLP: compound LLM requests as our SDK and engines emit them, and plain web requests.

    adviser   agent ├──────────────────────────────────────────────────────────────────┤
                    ├ policy ┤├ chat ┄ phases as spans ┤├ tool ┤├ chat ┄ as attributes ┤
                    ├ account ┤   │                                │
    gateway                      ├ SERVER ┤ ─ CLIENT ┄ phases     ├ …
    engine                          ├ SERVER ┤ ┄ queue, prefill, decode

Same seed, same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from llmlat_processor.model import CLIENT, INTERNAL, SERVER, AttributeValue
from llmlat_processor.wire.values import any_value
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import FACTS, Phase, duration_attribute
from llmlat_semconv.spans import (
    agent_span_name,
    engine_span_name,
    gateway_span_name,
    inference_span_name,
    phase_span_name,
    retrieval_span_name,
    tool_span_name,
)
from llmlat_semconv.values import Boundary, ContentKind, Evidence, OperationName, StreamEnd
from llmlat_semconv.version import CONTRACT_VERSION

ADVISER: Final = "adviser"
GATEWAY: Final = "gateway"
ENGINE: Final = "engine"

_MS: Final = 1_000_000
_PHASE_MIN_NS: Final = _MS
_START_NS: Final = 1_700_000_000 * 10**9
_OFFSETS_NS: Final = {ADVISER: 0, GATEWAY: 3 * _MS, ENGINE: -41 * _MS}
_MONOTONIC_NS: Final = _START_NS - 86_400 * 10**9
_MODEL: Final = "gpt-5-mini"
_SCOPE: Final = "llmlat_otel"

Values = Mapping[str, AttributeValue]
Durations = Mapping[Phase, int]
"""Nanoseconds of phases, in the order of the contract."""


@dataclass(slots=True)
class TraceBuilder:
    """The spans of one trace while it grows, by the service that emits them."""

    random: Random
    trace_id: bytes
    by_service: dict[str, list[Span]] = field(default_factory=dict)

    def add(
        self,
        service: str,
        name: str,
        parent: bytes,
        start_ns: int,
        duration_ns: int,
        kind: int,
        attributes: Values,
    ) -> bytes:
        """Add a span; its id."""
        start_ns += _START_NS + _OFFSETS_NS[service]
        span_id = self.random.randbytes(8)
        span = Span(
            trace_id=self.trace_id,
            span_id=span_id,
            parent_span_id=parent,
            name=name,
            kind=Span.SpanKind.ValueType(kind),
            start_time_unix_nano=start_ns,
            end_time_unix_nano=start_ns + duration_ns,
            attributes=key_values(attributes),
            flags=0x101,
        )
        self.by_service.setdefault(service, []).append(span)
        return span_id

    def add_phases(self, service: str, parent: bytes, start_ns: int, phases: Durations) -> None:
        """Add a span for each phase that is long enough for one, one after the other."""
        for sequence, (phase, size) in enumerate(phases.items()):
            if size >= _PHASE_MIN_NS:
                name = phase_span_name(phase.value)
                facts = _of_phase(phase, size, sequence, start_ns)
                self.add(service, name, parent, start_ns, size, INTERNAL, facts)
            start_ns += size

    def between(self, low_ms: float, high_ms: float) -> int:
        """A duration in ns."""
        return round(self.random.uniform(low_ms, high_ms) * _MS)


MakeTrace = Callable[[Random], TraceBuilder]


def key_values(attributes: Values) -> list[KeyValue]:
    """Attributes as OTLP has them."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


# ── A compound LLM request ───────────────────────────────────────────────────────────────────────


def llm_trace(random: Random) -> TraceBuilder:
    """Agent, two parallel retrievals, a model call, a tool, another model call: about 30 spans."""
    trace = TraceBuilder(random, random.randbytes(16))
    root = random.randbytes(8)
    policy, account = trace.between(100, 400), trace.between(50, 300)
    retrieved_ns = _MS + max(policy, account)
    for source, size in (("policy", policy), ("account", account)):
        facts = {names.LLMLAT_RETRIEVAL_SOURCE: source, **_of_step(_MS, OperationName.RETRIEVAL)}
        trace.add(ADVISER, retrieval_span_name(source), root, _MS, size, INTERNAL, facts)
    tool_ns = _add_chat(trace, root, retrieved_ns + trace.between(1, 5), as_spans=True)
    tool = trace.between(100, 800)
    facts = {
        names.GEN_AI_TOOL_NAME: "refund",
        names.GEN_AI_TOOL_CALL_ID: f"call_{random.randbytes(12).hex()}",
        **_of_step(tool_ns, OperationName.EXECUTE_TOOL),
    }
    trace.add(ADVISER, tool_span_name("refund"), root, tool_ns, tool, INTERNAL, facts)
    as_spans = random.random() < 0.25
    end_ns = _add_chat(trace, root, tool_ns + tool + trace.between(1, 3), as_spans=as_spans)
    facts = {names.GEN_AI_AGENT_NAME: "adviser", **_of_step(0, OperationName.INVOKE_AGENT)}
    trace.add(ADVISER, agent_span_name("adviser"), b"", 0, end_ns + _MS, INTERNAL, facts)
    trace.by_service[ADVISER][-1].span_id = root
    return trace


def _add_chat(trace: TraceBuilder, parent: bytes, start_ns: int, *, as_spans: bool) -> int:
    """Add a streamed model call through a gateway; when it ends."""
    engine = _engine_phases(trace)
    admission, route = trace.between(1, 6), trace.between(0.1, 0.6)
    first_output = sum(size for phase, size in engine.items() if phase is not Phase.DECODE)
    upstream = first_output + trace.between(0.5, 2)
    relay = trace.between(0.1, 0.4)
    client = {
        Phase.PREPARE: trace.between(0.2, 0.6),
        Phase.POOL_WAIT: trace.between(0.02, 0.05),
        Phase.CONNECT: trace.between(1, 3),
        Phase.SEND: trace.between(0.1, 0.3),
        Phase.WAIT: admission + route + upstream + trace.between(0.5, 2),
        Phase.FIRST_CONTENT: trace.between(0.2, 0.9),
        Phase.STREAM: engine[Phase.DECODE] + trace.between(0.2, 1),
        Phase.FINALIZE: relay + trace.between(0.5, 2),
    }
    duration = sum(client.values())
    name = inference_span_name(OperationName.CHAT.value, _MODEL)
    facts = _of_chat(trace.random, start_ns, client)
    facts |= _short_durations(client) if as_spans else _durations(client)
    chat = trace.add(ADVISER, name, parent, start_ns, duration, CLIENT, facts)
    if as_spans:
        trace.add_phases(ADVISER, chat, start_ns, client)
    sent_ns = start_ns + sum(list(client.values())[:4]) + trace.between(0.2, 0.5)
    gateway = {Phase.ADMISSION: admission, Phase.ROUTE: route}
    exchanged = {Phase.UPSTREAM: upstream, Phase.UPSTREAM_STREAM: engine[Phase.DECODE]}
    _add_gateway(trace, chat, sent_ns, gateway, exchanged, relay, engine)
    return start_ns + duration


def _engine_phases(trace: TraceBuilder) -> dict[Phase, int]:
    return {
        Phase.TOKENIZE: trace.between(0.3, 0.9),
        Phase.QUEUE: trace.between(2, 400),
        Phase.PREFILL: trace.between(50, 300),
        Phase.DECODE: trace.between(300, 2500),
        Phase.DETOKENIZE: trace.between(0.1, 0.4),
    }


def _add_gateway(
    trace: TraceBuilder,
    parent: bytes,
    start_ns: int,
    admitted: Durations,
    exchanged: Durations,
    relay: int,
    engine: Durations,
) -> None:
    """The gateway's SERVER span, its upstream CLIENT span, and the engine's SERVER span."""
    before, upstream = sum(admitted.values()), sum(exchanged.values())
    route = "/v1/chat/completions"
    facts = _of_server(trace.random, start_ns, Boundary.GATEWAY) | {
        names.HTTP_ROUTE: route,
        names.HTTP_REQUEST_METHOD: "POST",
        names.HTTP_RESPONSE_STATUS_CODE: 200,
        **_short_durations({**admitted, Phase.RELAY: relay}),
    }
    name = gateway_span_name(route)
    total = before + upstream + relay
    server = trace.add(GATEWAY, name, parent, start_ns, total, SERVER, facts)
    trace.add_phases(GATEWAY, server, start_ns, admitted)
    called_ns = start_ns + before
    facts = _of_server(trace.random, called_ns, Boundary.GATEWAY) | {
        names.GEN_AI_PROVIDER_NAME: "vllm",
        names.SERVER_ADDRESS: "10.0.0.7",
        names.SERVER_PORT: 8000,
    }
    name = inference_span_name(OperationName.CHAT.value, _MODEL)
    call = trace.add(GATEWAY, name, server, called_ns, upstream, CLIENT, facts)
    trace.add_phases(GATEWAY, call, called_ns, exchanged)
    _add_engine(trace, call, called_ns + trace.between(0.1, 0.4), engine)


def _add_engine(trace: TraceBuilder, parent: bytes, start_ns: int, phases: Durations) -> None:
    facts = _of_server(trace.random, start_ns, Boundary.ENGINE) | _short_durations(phases)
    name = engine_span_name(OperationName.CHAT.value)
    span = trace.add(ENGINE, name, parent, start_ns, sum(phases.values()), SERVER, facts)
    trace.add_phases(ENGINE, span, start_ns, phases)


def _durations(phases: Durations) -> dict[str, AttributeValue]:
    return {duration_attribute(phase): size / 1e9 for phase, size in phases.items()}


def _short_durations(phases: Durations) -> dict[str, AttributeValue]:
    """Of phases that are too short for a span."""
    return _durations({phase: size for phase, size in phases.items() if size < _PHASE_MIN_NS})


def _of_phase(phase: Phase, size: int, sequence: int, start_ns: int) -> dict[str, AttributeValue]:
    return {
        names.LLMLAT_PHASE_NAME: phase.value,
        names.LLMLAT_PHASE_CLASS: FACTS[phase].phase_class.value,
        names.LLMLAT_PHASE_EVIDENCE: Evidence.MEASURED.value,
        names.LLMLAT_BOUNDARY_NAME: FACTS[phase].boundary.value,
        names.LLMLAT_PHASE_DURATION: size / 1e9,
        names.LLMLAT_PHASE_SEQUENCE: sequence,
        names.LLMLAT_CLOCK_MONOTONIC_START: _MONOTONIC_NS + start_ns,
    }


def _of_step(start_ns: int, operation: OperationName) -> dict[str, AttributeValue]:
    """What an agent, a tool and a retrieval have in common: 12 with their own name."""
    return {
        names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
        names.LLMLAT_BOUNDARY_NAME: Boundary.AGENT.value,
        names.LLMLAT_CLOCK_ANCHOR_MONOTONIC: _MONOTONIC_NS,
        names.LLMLAT_CLOCK_ANCHOR_WALL: _START_NS,
        names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY: 240,
        names.LLMLAT_CLOCK_MONOTONIC_START: _MONOTONIC_NS + start_ns,
        names.GEN_AI_OPERATION_NAME: operation.value,
        names.GEN_AI_PROVIDER_NAME: "openai",
        "app.tenant": "north",
        "app.release": "2026.11.3",
        "app.sampled_by": "rate",
    }


def _of_chat(random: Random, start_ns: int, phases: Durations) -> dict[str, AttributeValue]:
    to_content = sum(phases.values()) - phases[Phase.STREAM] - phases[Phase.FINALIZE]
    return {
        names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
        names.LLMLAT_CLOCK_MONOTONIC_START: _MONOTONIC_NS + start_ns,
        names.LLMLAT_STREAM_END: StreamEnd.COMPLETE.value,
        names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT: to_content / 1e9,
        names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND: ContentKind.TEXT.value,
        names.GEN_AI_OPERATION_NAME: OperationName.CHAT.value,
        names.GEN_AI_REQUEST_MODEL: _MODEL,
        names.GEN_AI_REQUEST_STREAM: True,
        names.GEN_AI_RESPONSE_ID: f"chatcmpl-{random.randbytes(12).hex()}",
        names.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
        names.GEN_AI_USAGE_INPUT_TOKENS: random.randrange(200, 4000),
        names.GEN_AI_USAGE_OUTPUT_TOKENS: random.randrange(20, 400),
        names.SERVER_ADDRESS: "gateway.internal",
    }


def _of_server(random: Random, start_ns: int, boundary: Boundary) -> dict[str, AttributeValue]:
    return {
        names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
        names.LLMLAT_BOUNDARY_NAME: boundary.value,
        names.LLMLAT_CLOCK_MONOTONIC_START: _MONOTONIC_NS + start_ns,
        names.LLMLAT_REQUEST_ID: random.randbytes(16).hex(),
        names.GEN_AI_OPERATION_NAME: OperationName.CHAT.value,
        names.GEN_AI_REQUEST_MODEL: _MODEL,
        names.GEN_AI_USAGE_INPUT_TOKENS: random.randrange(200, 4000),
        names.GEN_AI_USAGE_OUTPUT_TOKENS: random.randrange(20, 400),
        names.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
    }


# ── A plain web request ──────────────────────────────────────────────────────────────────────────


def plain_trace(random: Random) -> TraceBuilder:
    """A web request through two services with queries in sequence: 30 spans, no LLM in it."""
    trace = TraceBuilder(random, random.randbytes(16))
    root = trace.add(ADVISER, "POST /orders", b"", 0, 140 * _MS, SERVER, _of_web(random))
    for call in range(4):
        start_ns = (5 + 33 * call) * _MS
        client = trace.add(ADVISER, "POST", root, start_ns, 30 * _MS, CLIENT, _of_web(random))
        start_ns += _MS
        server = trace.add(
            GATEWAY, "POST /items", client, start_ns, 28 * _MS, SERVER, _of_web(random)
        )
        for query in range(5):
            at_ns = start_ns + (1 + 5 * query) * _MS
            trace.add(GATEWAY, "SELECT items", server, at_ns, 4 * _MS, CLIENT, _of_web(random))
    trace.add(ENGINE, "audit", root, 138 * _MS, _MS, INTERNAL, _of_web(random))
    return trace


def _of_web(random: Random) -> dict[str, AttributeValue]:
    return {
        names.HTTP_REQUEST_METHOD: "POST",
        names.HTTP_RESPONSE_STATUS_CODE: 200,
        names.HTTP_ROUTE: "/orders/{id}",
        names.SERVER_ADDRESS: "orders.internal",
        names.SERVER_PORT: 443,
        "url.scheme": "https",
        "url.path": f"/orders/{random.randrange(10**6)}",
        "network.protocol.version": "1.1",
        "user_agent.original": "orders-client/4.2 (linux)",
        "client.address": "10.1.2.3",
        "db.rows": random.randrange(1000),
        "app.tenant": "north",
    }


# ── Requests of a collector ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Batch:
    """A serialized ExportTraceServiceRequest, and how many spans and traces it holds."""

    request: bytes
    spans: int
    traces: int


def batches(make_trace: MakeTrace, count: int, seed: int, size: int = 500) -> list[Batch]:
    """Requests of about `size` spans each, of whole traces, as a collector's batcher sends them."""
    random = Random(seed)
    return [_batch(make_trace, random, size) for _ in range(count)]


def _batch(make_trace: MakeTrace, random: Random, size: int) -> Batch:
    traces: list[TraceBuilder] = []
    spans = 0
    while spans < size:
        traces.append(make_trace(random))
        spans += sum(map(len, traces[-1].by_service.values()))
    return Batch(request_of(traces).SerializeToString(), spans, len(traces))


def request_of(traces: Sequence[TraceBuilder]) -> ExportTraceServiceRequest:
    """A request of traces, or of what there is of them so far."""
    by_service: dict[str, list[Span]] = {}
    for trace in traces:
        for service, spans in trace.by_service.items():
            by_service.setdefault(service, []).extend(spans)
    return ExportTraceServiceRequest(
        resource_spans=[_resource_spans(service, spans) for service, spans in by_service.items()]
    )


def _resource_spans(service: str, spans: Iterable[Span]) -> ResourceSpans:
    scope = ScopeSpans(spans=spans)
    scope.scope.name = _SCOPE
    resource: Values = {
        names.SERVICE_NAME: service,
        names.SERVICE_INSTANCE_ID: f"{service}-1",
        names.HOST_NAME: f"{service}-host",
        names.PROCESS_PID: 7,
        names.LLMLAT_CLOCK_DOMAIN_ID: f"clock of {service}",
    }
    return ResourceSpans(resource=Resource(attributes=key_values(resource)), scope_spans=[scope])
