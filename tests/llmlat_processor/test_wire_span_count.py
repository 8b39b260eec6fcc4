"""How many spans an export holds is seen before it is read, whatever else is in it."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.wire import UndecodableError
from llmlat_processor.wire.fields import field, varint
from llmlat_processor.wire.span_count import MOST_NODES, MOST_SPANS, check_count, check_nodes

EMPTY = b"\x12\x00"
AN_ID = field(1, bytes(16)) + field(2, b"12345678")


def of_spans(spans: bytes) -> bytes:
    """In one scope, behind fields that nobody knows."""
    unknown = b"\x78\x96\x01" + b"\x79" + bytes(8) + b"\x7d" + bytes(4)
    scope = unknown + field(1, b"") + field(3, b"schema") + spans
    return unknown + field(1, unknown + field(1, b"") + field(2, scope))


@pytest.mark.parametrize(
    "request_",
    [
        of_spans(EMPTY * (MOST_SPANS + 1)),
        of_spans(field(2, AN_ID) * (MOST_SPANS + 1)),
        field(1, EMPTY * (MOST_SPANS + 1)),
        b"\x0a\x00" * (MOST_SPANS + 1),
        b"\x08\x00" * (MOST_SPANS + 1),
        b"\x0b" + of_spans(EMPTY * (MOST_SPANS + 1)) + b"\x0c",
    ],
    ids=["empty spans", "spans", "scopes", "resources", "what nobody knows", "in a group"],
)
def test_too_many_are_refused_with_what_to_do(request_: bytes) -> None:
    with pytest.raises(UndecodableError, match="send smaller batches"):
        check_count(request_)


@pytest.mark.parametrize("size", [30, 600])
def test_large_exports_of_fewer_spans_are_let_in(size: int) -> None:
    span = field(2, AN_ID + field(5, b"x" * size))
    request = of_spans(span * (MOST_SPANS // 4))
    assert len(ExportTraceServiceRequest.FromString(request).resource_spans) == 1
    check_count(request)


@pytest.mark.parametrize("start", [b"", b"\x0a", b"\x0a" + varint(1 << 40), b"\x09"])
def test_what_is_broken_is_for_others_to_refuse(start: bytes) -> None:
    check_count(start + b"\xff" * (2 * MOST_SPANS + 1))


def test_too_many_objects_of_json_are_refused_and_fewer_let_in() -> None:
    check_nodes(b"{}" * (MOST_NODES - 1) + b"[]")
    with pytest.raises(UndecodableError, match="send smaller batches"):
        check_nodes(b"{}" * MOST_NODES + b"[]")
