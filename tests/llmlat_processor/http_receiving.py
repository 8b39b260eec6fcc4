"""OTLP over HTTP in a few words, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from google.protobuf.json_format import ParseDict
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from llmlat_processor.edges.http_receiver import HttpReceiver
from llmlat_processor.edges.receiver import Take
from llmlat_processor.settings import Listener
from tests.llmlat_processor.otlp import START_NS, TRACE_ID, request, span
from tests.llmlat_processor.receiving import MIB

PROTOBUF, JSON = "application/x-protobuf", "application/json"
BOTH = pytest.mark.parametrize("kind", [PROTOBUF, JSON])
TRACES = "/v1/traces"
LOOPBACK = Listener("127.0.0.1:0")
ONE = request([span(1)]).SerializeToString()


@contextmanager
def receiving(
    take: Take, listener: Listener = LOOPBACK, max_message_bytes: int = MIB, **settings: Any
) -> Iterator[HttpReceiver]:
    receiver = HttpReceiver(listener, take, max_message_bytes=max_message_bytes, **settings)
    try:
        yield receiver
    finally:
        receiver.stop()


def post(
    receiver: HttpReceiver,
    content: bytes | Iterator[bytes],
    kind: str = PROTOBUF,
    path: str = TRACES,
    **headers: str,
) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"http://{receiver.address}{path}"
    return httpx.post(url, content=content, headers={"content-type": kind, **sent})


def in_json(*spans: dict[str, Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def json_span(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE_ID.hex(),
        "spanId": f"{number:016x}",
        "name": "chat gemma",
        "startTimeUnixNano": str(START_NS),
        "endTimeUnixNano": str(START_NS + 200),
        **changes,
    }


def of(kind: str, *numbers: int) -> bytes:
    """Sound spans."""
    if kind == JSON:
        return in_json(*map(json_span, numbers))
    return request(map(span, numbers)).SerializeToString()


def status_of(answer: httpx.Response) -> Status:
    """What an error says, in the language that it comes in."""
    if answer.headers["content-type"] == JSON:
        return ParseDict(answer.json(), Status())
    assert answer.headers["content-type"] == PROTOBUF
    return Status.FromString(answer.content)
