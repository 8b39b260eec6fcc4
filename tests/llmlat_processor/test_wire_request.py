"""What was received, kept as it came, where decoding it once more gives the same spans."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.wire import Decoded, decode
from tests.llmlat_processor.otlp import TRACE_ID, raw_request, request, span

SOUND = [span(number).SerializeToString() for number in (1, 2)]
DAMAGED = [
    span(3, trace_id=b"short").SerializeToString(),
    span(4, name="chat?").SerializeToString().replace(b"chat?", b"chat\xff"),
    b"\xff",
]


def identities(decoded: Decoded) -> list[tuple[bytes, bytes]]:
    return [(span.trace_id, span.span_id) for span in decoded.spans]


@given(spans=st.lists(st.sampled_from([*SOUND, *DAMAGED]), max_size=6))
def test_a_request_is_kept_if_and_only_if_all_of_it_is_sound(spans: list[bytes]) -> None:
    content = raw_request(spans)

    decoded = decode(content)

    assert decoded.request == (content if all(raw in SOUND for raw in spans) else b"")


@given(numbers=st.lists(st.lists(st.integers(1, 255), max_size=4), max_size=4))
def test_what_is_kept_holds_the_same_spans_in_the_same_order(numbers: list[list[int]]) -> None:
    parts = [request(map(span, part)).SerializeToString() for part in numbers]

    decoded = decode(b"".join(parts))

    expected = [(TRACE_ID, number.to_bytes(8, "big")) for part in numbers for number in part]
    assert identities(decode(decoded.request)) == identities(decoded) == expected


def test_a_link_that_is_set_aside_is_set_aside_once() -> None:
    linked = span(1)
    linked.links.add(trace_id=b"short", span_id=bytes(8))

    decoded = decode(request([linked]).SerializeToString())

    assert len(decoded.spans) == len(decoded.damaged) == 1
    assert decoded.request == b""
