"""What is remembered of a trace that goes on for ever after it was let go."""

from __future__ import annotations

from itertools import pairwise

from llmlat_processor.window.tombstones import Tombstones
from llmlat_processor.wire import WireSpan, decode
from tests.llmlat_processor.otlp import TRACE_ID, request, span

LATE = 1_000


def received(count: int) -> list[WireSpan]:
    spans = [span(number) for number in range(1, count + 1)]
    return decode(request(spans).SerializeToString()).spans


def test_each_of_many_late_spans_is_known_when_it_comes_again() -> None:
    graves = Tombstones(traces=1, spans=10_000)
    first, *late = received(LATE)
    graves.bury(TRACE_ID, [first], until_ns=1)

    assert not any(graves.is_repeat(one) for one in late)
    assert all(graves.is_repeat(one) for one in [first, *late])
    assert graves.spans == LATE


def test_a_late_span_does_not_move_the_marks_of_all_before() -> None:
    """With one sorted list half a million late spans made each new one ten times as slow."""
    graves = Tombstones(traces=1, spans=10_000)
    first, *late = received(LATE)
    graves.bury(TRACE_ID, [first], until_ns=1)
    for one in late:
        graves.is_repeat(one)

    sizes = [len(run) for run in graves._stones[TRACE_ID].runs]
    assert all(longer > shorter for longer, shorter in pairwise(sizes))
    assert len(sizes) <= LATE.bit_length()
