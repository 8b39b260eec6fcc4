"""What senders are told of their spans, in OTLP's own words, whether over gRPC or over HTTP."""

from __future__ import annotations

from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.rpc.code_pb2 import UNAVAILABLE  # type: ignore[import-untyped]
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from llmlat_processor.wire import Decoded

RETRY_AFTER_S: Final = 1

_HINT: Final = "; if these are logs or metrics, send them to their own service"


def success(decoded: Decoded) -> ExportTraceServiceResponse:
    """Success, which is empty, or partial success that says what was wrong first."""
    if not decoded.damaged:
        return ExportTraceServiceResponse()
    partial = ExportTracePartialSuccess(
        rejected_spans=decoded.refused, error_message=what_was_refused(decoded)
    )
    return ExportTraceServiceResponse(partial_success=partial)


def what_was_refused(decoded: Decoded) -> str:
    """The count of spans set aside, and the reason for the first."""
    refused, kept = decoded.refused, len(decoded.spans)
    hint = "" if kept or decoded.request else _HINT
    return f"{refused} of {refused + kept} spans refused; first {decoded.damaged[0]}{hint}"


def retry_info() -> RetryInfo:
    """When to come again."""
    return RetryInfo(retry_delay=Duration(seconds=RETRY_AFTER_S))


def not_now(words: str) -> Status:
    """Overload: without RetryInfo some exporters drop the data for good."""
    status = Status(code=UNAVAILABLE, message=words)
    status.details.add().Pack(retry_info())
    return status
