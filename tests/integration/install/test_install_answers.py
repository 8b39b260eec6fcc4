"""What the real OTLP exporters tell of a batch, and what has to be overheard."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from llmlat_otel.destinations import CountedExporter, CountedProcessor, Destination, endpoint_of
from tests.integration.install.collector import Collector

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


@contextmanager
def answering(answer: Any) -> Iterator[str]:
    """A gRPC collector that gives one answer, a message or a status; its address."""

    def export(_: bytes, context: Any) -> bytes:
        if isinstance(answer, grpc.StatusCode):
            context.abort(answer, "no")
        return bytes(answer.SerializeToString())

    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        handlers = {"Export": grpc.unary_unary_rpc_method_handler(export)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(0).wait()


def sent(exporter: Any, spans: int = 3) -> Destination:
    """The account of a destination to which some spans were sent."""
    destination = Destination("otlp", endpoint_of(exporter))
    counted: Any = CountedExporter(exporter, destination)
    processor: Any = CountedProcessor(BatchSpanProcessor(counted), destination)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    for _ in range(spans):
        provider.get_tracer("test").start_span("span").end()
    assert provider.force_flush()
    provider.shutdown()
    return destination


def partial(rejected: int) -> ExportTraceServiceResponse:
    success = ExportTracePartialSuccess(rejected_spans=rejected, error_message="too old")
    return ExportTraceServiceResponse(partial_success=success)


def account(destination: Destination) -> tuple[int | None, ...]:
    return destination.sent, destination.rejected, destination.failed, destination.queued


def test_grpc_accepts() -> None:
    with answering(ExportTraceServiceResponse()) as address:
        destination = sent(GrpcExporter(address, insecure=True))
    assert account(destination) == (3, 0, 0, 0)
    assert destination.endpoint == address
    assert destination.last_error is None


def test_grpc_rejects_a_part_which_the_exporter_calls_a_success() -> None:
    with answering(partial(2)) as address:
        destination = sent(GrpcExporter(address, insecure=True))
    assert account(destination) == (1, 2, 0, 0)
    assert destination.last_error is not None
    assert destination.last_error[0] == "too old"


def test_grpc_refuses() -> None:
    with answering(grpc.StatusCode.PERMISSION_DENIED) as address:
        destination = sent(GrpcExporter(address, insecure=True))
    assert account(destination) == (0, 0, 3, 0)
    assert destination.last_error is not None
    assert "PERMISSION_DENIED" in destination.last_error[0]


@pytest.mark.parametrize("rejected", [0, 2])
def test_http_accepts_all_or_rejects_a_part(rejected: int, collector: Collector) -> None:
    collector.rejected = rejected
    destination = sent(HttpExporter(f"{collector.url}/v1/traces"))
    assert account(destination) == (3 - rejected, rejected, 0, 0)


def test_http_refuses(collector: Collector) -> None:
    collector.status = 400
    destination = sent(HttpExporter(f"{collector.url}/v1/traces"))
    assert account(destination) == (0, 0, 3, 0)
    assert destination.last_error is not None
    assert "400" in destination.last_error[0]
