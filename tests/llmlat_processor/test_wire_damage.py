"""Damage in an export, as small as it can be: what it costs, and whom."""

from __future__ import annotations

import json

import pytest

from llmlat_processor.wire import decode, decode_json
from llmlat_processor.wire.sharding import shard_of, shards
from llmlat_processor.wire.slim import join_envelope, join_request
from tests.llmlat_processor.otlp import request, span


@pytest.mark.parametrize(
    "empty",
    [b"\x0a\x03abc", b"\x0a\x04\x0a\x02\x0a\x05", b"\x1a\x01\xff"],
    ids=["resource", "attribute", "schema url"],
)
def test_a_damaged_resource_without_spans_is_told_and_costs_nobody(empty: bytes) -> None:
    decoded = decode(request([span()]).SerializeToString() + join_request([empty]))
    assert [str(damaged) for damaged in decoded.damaged] == [
        "resource_spans: something that holds no spans is damaged"
    ]
    assert (len(decoded.spans), decoded.refused) == (1, 0)


def test_a_damaged_scope_moves_no_trace_of_another_scope_to_another_shard() -> None:
    sound = span()
    scopes = [join_envelope(b"", [sound.SerializeToString()]), b"\x12\x7f"]
    parts = shards(join_request([join_envelope(b"", scopes)]), 3)
    read = [decode(part) if part else None for part in parts]
    expected = [1 if number == shard_of(sound.trace_id, 3) else 0 for number in range(3)]
    assert expected[0] == 0  # where the damaged one goes
    assert [len(one.spans) if one else 0 for one in read] == expected
    assert [len(one.damaged) if one else 0 for one in read] == [1, 0, 0]


def test_bytes_that_are_not_ascii_cost_their_span_alone() -> None:
    ids = {"traceId": "ab" * 16, "spanId": "cd" * 8}
    damaged = {**ids, "attributes": [{"key": "k", "value": {"bytesValue": "日本語"}}]}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [damaged, ids]}]}]}
    decoded = decode_json(json.dumps(document).encode())
    assert [span.trace_id for span in decoded.spans] == [b"\xab" * 16]
    assert [damaged.reason for damaged in decoded.damaged] == ["is not base64"]
