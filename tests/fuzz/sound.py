"""Sound requests to be damaged, and the sound ones that come beside them: all that OTLP can say."""

from __future__ import annotations

from random import Random
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from llmlat_processor.model import AttributeValue
from llmlat_semconv import attributes as names
from tests.llmlat_processor.otlp import START_NS, pairs

NEIGHBOUR: Final = b"neighbour"
"""How the trace ids of neighbours begin, and those of no other."""

_SECOND_NS: Final = 1_000_000_000
_TEXTS: Final = ("chat", "gemma-2b", "tool", "naïve", "日本語", "🦊", "", "x" * 70, "a" * 300)
_KEYS: Final = (
    names.GEN_AI_OPERATION_NAME,
    names.GEN_AI_REQUEST_MODEL,
    names.GEN_AI_USAGE_INPUT_TOKENS,
    names.GEN_AI_USAGE_OUTPUT_TOKENS,
    names.LLMLAT_CLOCK_DOMAIN_ID,
    names.LLMLAT_CONTRACT_VERSION,
    names.LLMLAT_PHASE_NAME,
    names.RPC_SYSTEM,
    names.SERVER_ADDRESS,
    names.HTTP_ROUTE,
    "",
)


def sound_request(random: Random, marker: bytes = b"") -> ExportTraceServiceRequest:
    """Some spans, of one trace where they are marked, in one envelope or several.

    Args:
        random: what decides.
        marker: how the trace ids begin.
    """
    request = ExportTraceServiceRequest()
    traces = 1 if marker else random.randint(1, 2)
    spans = [span for _ in range(traces) for span in _trace(random, marker)]
    random.shuffle(spans)
    while spans:
        resource_spans = request.resource_spans.add()
        resource_spans.resource.attributes.extend(_resource(random))
        if random.random() < 0.2:
            resource_spans.schema_url = "https://opentelemetry.io/schemas/1.37.0"
        for _ in range(random.randint(1, 2)):
            scope_spans = resource_spans.scope_spans.add()
            scope_spans.scope.name = random.choice(_TEXTS)
            taken = random.randint(1, 3)
            scope_spans.spans.extend(spans[:taken])
            del spans[:taken]
    return request


def _trace(random: Random, marker: bytes) -> list[Span]:
    trace_id = (marker + random.randbytes(16))[:16]
    spans: list[Span] = []
    for _ in range(random.randint(1, 4)):
        parent = random.choice(spans) if spans else None
        spans.append(_span(random, trace_id, parent))
    return spans


def _span(random: Random, trace_id: bytes, parent: Span | None) -> Span:
    start_ns = parent.start_time_unix_nano if parent else START_NS
    span = Span(
        trace_id=trace_id,
        span_id=random.randbytes(7) + b"\1",
        parent_span_id=parent.span_id if parent else b"",
        name=random.choice(_TEXTS),
        kind=random.randint(0, 5),  # type: ignore[arg-type]  # OTLP's numbers
        start_time_unix_nano=start_ns + random.randrange(_SECOND_NS),
        attributes=pairs(_attributes(random, random.randint(0, 4))),
        flags=random.choice((0, 1, 0x101, 0x301)),
    )
    span.end_time_unix_nano = span.start_time_unix_nano + random.randrange(_SECOND_NS)
    if random.random() < 0.5:
        operation = random.choice(("chat", "execute_tool", "invoke_agent"))
        span.attributes.extend(pairs({names.GEN_AI_OPERATION_NAME: operation}))
    for _ in range(random.choice((0, 0, 1, 2))):
        span.events.add(
            name=random.choice(_KEYS),
            time_unix_nano=span.start_time_unix_nano + random.randrange(_SECOND_NS),
            attributes=pairs(_attributes(random, 1)),
        )
    if random.random() < 0.2:
        attributes = pairs(_attributes(random, 1))
        span.links.add(trace_id=trace_id, span_id=random.randbytes(8), attributes=attributes)
    if random.random() < 0.3:
        status = Status(code=Status.STATUS_CODE_ERROR, message=random.choice(_TEXTS))
        span.status.CopyFrom(status)
    if random.random() < 0.1:
        span.trace_state = "vendor=1"
    return span


def _resource(random: Random) -> list[KeyValue]:
    attributes: dict[str, AttributeValue] = {
        names.SERVICE_NAME: random.choice(("adviser", "gateway", "engine")),
        names.SERVICE_INSTANCE_ID: random.choice("abc"),
    }
    return pairs({**attributes, **_attributes(random, random.randint(0, 2))})


def _attributes(random: Random, count: int) -> dict[str, AttributeValue]:
    return {random.choice(_KEYS): _value(random) for _ in range(count)}


def _value(random: Random) -> AttributeValue:
    return random.choice(
        (
            random.choice(_TEXTS),
            random.randrange(200),
            random.randrange(-(2**63), 2**63),
            random.choice((True, False)),
            random.random(),
            random.choice((float("nan"), float("inf"), -0.0, 1e308)),
            random.randbytes(5),
            (1, "two", (3.0,)),
            None,
        )
    )
