"""The demo's request on its way into Jaeger, with a tap on what the processor gets of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from children import Children
from parties import adviser_asks, busy, start_engine, start_gateway
from tests.integration.jaeger.lanes import originals
from tests.integration.jaeger.loop import Loop, running_loop
from tests.integration.jaeger.storage import Stored, unpack
from tests.llmlat_processor.sink import Sink, sink

_EXPORTERS = ("otlp_grpc/llmlat", "otlp_grpc/tap")

# App and gateway export by themselves. However slow the machine is, what one of them sends comes
# well before the processor has had enough of waiting for it: 10 s after a tenth of a second.
_SOON = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
_PATIENT = "--idle=10"


@dataclass(frozen=True)
class DemoTrace:
    """Both ends of it.

    Attributes:
        trace_id: of the adviser's request.
        requests: what the processor got, as it came.
        sent: each span in them by its id, of whatever trace.
        stored: the trace in Jaeger.
    """

    trace_id: bytes
    requests: Sequence[bytes]
    sent: Mapping[bytes, Stored]
    stored: Sequence[Stored]


@contextmanager
def tapped_loop(folder: Path) -> Iterator[tuple[Loop, Sink]]:
    """A loop whose collector sends everything to a sink as well."""
    with (
        sink() as tap,
        running_loop(folder, _PATIENT, overlays=[_tapped(tap.address)]) as loop,
    ):
        yield loop, tap


def _tapped(address: str) -> str:
    tap = {"endpoint": address, "compression": "none", "tls": {"insecure": True}}
    pipelines = {"traces/in": {"exporters": _EXPORTERS}}
    return json.dumps({"exporters": {_EXPORTERS[1]: tap}, "service": {"pipelines": pipelines}})


def run_demo(loop: Loop) -> None:
    """What `make demo-jaeger` starts beside the loop, from beginning to end; engine emulated."""
    telemetry = loop.addresses.otlp_grpc
    with Children(loop.folder) as children:
        server = {**start_engine(children, "emulated"), **_SOON}
        client = start_gateway(children, server, telemetry)
        with busy(children, server):
            adviser_asks(children, client, telemetry, print)


def arrived(loop: Loop, tap: Sink) -> DemoTrace:
    """The trace as soon as all of it is at both ends."""

    def found() -> DemoTrace | None:
        requests = list(tap.requests)
        sent = {each.span.span_id: each for each in _spans_in(requests)}
        trace_id = next((each.span.trace_id for each in sent.values()), b"")
        stored = loop.stored(trace_id) if trace_id else []
        awaited = {of for of, each in sent.items() if each.span.trace_id == trace_id}
        is_all = {each.span.span_id for each in originals(stored)} == awaited
        return DemoTrace(trace_id, requests, sent, stored) if sent and is_all else None

    seen = loop.until(found)
    assert seen
    return seen


def _spans_in(requests: Sequence[bytes]) -> Iterator[Stored]:
    for content in requests:
        yield from unpack(ExportTraceServiceRequest.FromString(content))
