"""Hands spans to another process of this machine, over OTLP, and tells what came of it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Final, NamedTuple

import grpc  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from llmlat_processor.edges.sending import Signal

ANSWER_S: Final = 20.0

_CHANNEL: Final = [
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
]


class Answer(NamedTuple):
    """What came of it.

    Attributes:
        why_not: why nothing was taken; empty where it was.
        rejected: spans that were damaged.
        message: what is said of those.
    """

    why_not: str = ""
    rejected: int = 0
    message: str = ""


class WorkerLink:
    """A channel to one process; it may come and go."""

    def __init__(self, address: str) -> None:
        """Nothing is connected yet."""
        self._channel = grpc.insecure_channel(address, options=_CHANNEL)
        self._export = self._channel.unary_unary(Signal.TRACES.method)

    def send(self, content: bytes) -> Future[Answer]:
        """Hand over an ExportTraceServiceRequest."""
        answer: Future[Answer] = Future()
        self._export.future(content, timeout=ANSWER_S).add_done_callback(
            lambda call: answer.set_result(_answer(call))
        )
        return answer

    def close(self) -> None:
        """Leave no connection behind."""
        self._channel.close()


def _answer(call: grpc.Future) -> Answer:
    try:
        partial = ExportTraceServiceResponse.FromString(call.result()).partial_success
    except grpc.RpcError as error:
        return Answer(error.details() or error.code().name)
    except (grpc.FutureCancelledError, DecodeError) as error:
        return Answer(str(error) or type(error).__name__)
    return Answer("", partial.rejected_spans, partial.error_message)
