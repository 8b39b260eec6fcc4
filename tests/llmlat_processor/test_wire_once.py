"""Spans that are passed on as they came: the same as any other way, each once, within the limit."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as some

from llmlat_processor.wire import WireSpan, decode, encode_once, encode_within
from tests.llmlat_processor.otlp import request, span

LIMIT_BYTES = 1 << 20


def spans_of(numbers: Sequence[int], scope: str = "") -> Sequence[WireSpan]:
    message = request([span(number + 1) for number in numbers])
    message.resource_spans[0].scope_spans[0].scope.name = scope
    return decode(message.SerializeToString()).spans


@given(some.lists(some.tuples(some.sampled_from(["a", "b"]), some.integers(0, 5)), max_size=12))
def test_of_equal_spans_the_first_is_sent_as_it_would_be_without_the_others(
    wanted: list[tuple[str, int]],
) -> None:
    spans = [one for scope, number in wanted for one in spans_of([number], scope)]
    first = [one for scope, number in dict.fromkeys(wanted) for one in spans_of([number], scope)]

    once = encode_once(LIMIT_BYTES, spans)

    assert once is not None
    assert [once] * bool(first) == [*encode_within(LIMIT_BYTES, first)]
    assert once.spans == len(set(wanted))


def test_what_is_above_the_limit_is_left_to_others() -> None:
    spans = spans_of(range(5))
    size = sum(len(one.raw) for one in spans)

    assert encode_once(size, spans) is None
    assert encode_once(size, [spans[0]] * 9) is not None


def test_a_name_is_one_object_however_often_it_comes() -> None:
    came = [decode(request([span(1, name="one name")]).SerializeToString()) for _ in range(3)]

    assert len({id(decoded.spans[0].name) for decoded in came}) == 1
