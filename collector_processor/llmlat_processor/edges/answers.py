"""What destinations answer: what they did not take, when to come again, and what they say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Final

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from llmlat_processor.edges.sending import Taken
from llmlat_processor.wire.jaeger_fields import saying

JSON: Final = "application/json"


def taken(answer: bytes, content_type: str = "") -> Taken:
    """Read a success; one that cannot be read is a success of everything.

    The answers of all signals have the same form: a number, and words.

    Args:
        answer: an export response, in Protobuf unless it is said to be JSON.
        content_type: what it is said to be.
    """
    try:
        if content_type.startswith(JSON):
            return _taken_json(answer)
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
    except (DecodeError, ValueError, TypeError, AttributeError, RecursionError):
        return Taken()
    return Taken(max(0, partial.rejected_spans), saying(partial.error_message))


def _taken_json(answer: bytes) -> Taken:
    partial = json.loads(answer).get("partialSuccess") or {}
    rejected = [value for key, value in partial.items() if key.startswith("rejected")]
    return Taken(max(0, *map(int, rejected), 0), saying(partial.get("errorMessage") or ""))


def said(answer: bytes, content_type: str) -> str:
    """What an error says: the message of a Status in Protobuf or JSON, or plain text."""
    try:
        if content_type.startswith("application/x-protobuf"):
            return saying(Status.FromString(answer).message)
        if content_type.startswith(JSON):
            return saying(json.loads(answer)["message"])
        return saying(answer.decode()).strip() if content_type.startswith("text/plain") else ""
    except (DecodeError, ValueError, TypeError, LookupError, RecursionError):
        return ""


def retry_info_s(trailers: Iterable[tuple[str, str | bytes]]) -> float | None:
    """The pause in seconds that a gRPC status asks for, in either place where one may stand."""
    for key, value in trailers:
        try:
            if key == "google.rpc.retryinfo-bin":
                return _seconds(RetryInfo.FromString(value))
            if key == "grpc-status-details-bin":
                for detail in Status.FromString(value).details:
                    info = RetryInfo()
                    if detail.Unpack(info):
                        return _seconds(info)
        except DecodeError:
            continue
    return None


def _seconds(info: RetryInfo) -> float:
    return max(0.0, float(info.retry_delay.seconds) + float(info.retry_delay.nanos) / 1e9)


def retry_after_s(header: str, now_s: float) -> float:
    """The pause in seconds that a `Retry-After` asks for, 0 where it is none.

    Args:
        header: a number of seconds, or a date.
        now_s: seconds since the epoch.
    """
    header = header.strip()
    if header.isascii() and header.isdecimal():
        return float(header)
    try:
        at = parsedate_to_datetime(header)
    except (ValueError, TypeError):
        return 0
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)  # "-0000": GMT all the same
    return max(0.0, at.timestamp() - now_s)
