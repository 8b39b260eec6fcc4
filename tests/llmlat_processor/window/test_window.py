"""When traces are let go, and what happens at the limits."""

from __future__ import annotations

import pytest

from llmlat_processor.model import CLIENT, PARENT_IS_REMOTE, SERVER, Span
from llmlat_processor.window import SECOND_NS, SPAN_OVERHEAD, Books, Limits, Why, Window
from llmlat_semconv import attributes as names
from tests.llmlat_processor.windowed import ENGINE, expire, feed, span, summary


def test_a_trace_goes_when_its_root_has_ended_and_nothing_came_for_a_while() -> None:
    window = Window()
    feed(window, span(2, 1), at_s=0)
    feed(window, span(1), at_s=1)

    assert expire(window, 2.999) == []
    assert expire(window, 3.0) == [(Why.COMPLETE, [2, 1])]
    assert expire(window, 99) == []


def test_every_new_span_starts_the_wait_afresh() -> None:
    window = Window()
    feed(window, span(1), at_s=0)
    feed(window, span(2, 1), at_s=1.9)

    assert expire(window, 3.8) == []
    assert expire(window, 3.9) == [(Why.COMPLETE, [1, 2])]


def test_without_a_root_a_trace_is_held_for_the_longest_time() -> None:
    window = Window()
    feed(window, span(2, 1), at_s=0)

    assert expire(window, 59.9) == []
    assert expire(window, 60) == [(Why.HELD_LONGEST, [2])]


def test_a_root_that_comes_late_ends_the_wait_soon() -> None:
    window = Window()
    feed(window, span(2, 1), at_s=0)
    expire(window, 10)
    feed(window, span(1), at_s=20)

    assert expire(window, 22) == [(Why.COMPLETE, [2, 1])]


def test_a_trace_that_never_falls_silent_is_let_go_all_the_same() -> None:
    window = Window()
    for second in range(60):
        assert feed(window, span(second + 1, second), at_s=second) == []
        assert expire(window, second) == []

    ((why, spans),) = expire(window, 60)

    assert (why, len(spans)) == (Why.HELD_LONGEST, 60)


def test_where_many_are_due_some_go_at_a_time_and_none_is_split() -> None:
    window = Window()
    traces = range(1, 5)
    feed(window, *(span(number, number - 1, trace=trace) for trace in traces for number in (1, 2)))
    now_ns = 2 * SECOND_NS

    rounds = [[len(one.spans) for one in window.expire(now_ns, 3)] for _ in range(3)]

    assert rounds == [[2, 2], [2, 2], []]


def test_spans_that_are_held_share_the_id_of_their_trace() -> None:
    window = Window()
    came = [span(1), span(2, 1), span(3, 1)]
    assert len({id(one.trace_id) for one in came}) == len(came)
    window.feed_all(came, 0)

    (released,) = window.expire(2 * SECOND_NS)

    assert {id(one.trace_id) for one in released.spans} == {id(came[0].trace_id)}


CALL = span(2, 1, kind=CLIENT)
CALLEES = [
    span(3, 2, kind=SERVER),
    span(3, 2, resource=ENGINE),
    span(3, 2, flags=PARENT_IS_REMOTE),
]


@pytest.mark.parametrize("callee", CALLEES)
def test_a_call_without_its_callee_is_given_grace(callee: Span) -> None:
    answered, unanswered = Window(), Window()
    feed(answered, span(1), CALL, callee)
    feed(unanswered, span(1), CALL)

    assert expire(answered, 2) == [(Why.COMPLETE, [1, 2, 3])]
    assert expire(unanswered, 5.9) == []
    assert expire(unanswered, 6) == [(Why.COMPLETE, [1, 2])]


def test_a_callee_that_comes_within_the_grace_ends_it() -> None:
    window = Window()
    feed(window, span(1), CALL)
    expire(window, 2)
    feed(window, CALLEES[0], at_s=3)

    assert expire(window, 5) == [(Why.COMPLETE, [1, 2, 3])]


def test_an_inference_of_any_kind_is_a_call_and_its_own_server_is_not() -> None:
    chat = {names.GEN_AI_OPERATION_NAME: "chat"}
    inference, engine = Window(), Window()
    feed(inference, span(1, attributes=chat))
    feed(engine, span(1, kind=SERVER, attributes=chat))

    assert expire(engine, 2) == [(Why.COMPLETE, [1])]
    assert expire(inference, 2) == []
    assert expire(inference, 6) == [(Why.COMPLETE, [1])]


@pytest.mark.parametrize("parent_of_callee", [2, 3])
def test_a_call_is_answered_directly_or_through_its_transport(parent_of_callee: int) -> None:
    transport = span(3, 2, kind=CLIENT)
    window = Window()
    feed(window, span(1), CALL, transport, span(4, parent_of_callee, kind=SERVER))

    assert expire(window, 2) == [(Why.COMPLETE, [1, 2, 3, 4])]


def call_to(address: str | None, number: int, *, answered: bool = False) -> list[Span]:
    where = {names.SERVER_ADDRESS: address} if address else {}
    call = span(2, 1, trace=number, kind=CLIENT, attributes=where)
    callee = [span(3, 2, trace=number, kind=SERVER)] if answered else []
    return [span(1, trace=number), call, *callee]


@pytest.mark.parametrize("address", ["api.example.test", None])
def test_a_target_that_never_had_a_callee_is_not_waited_for(address: str | None) -> None:
    window = Window(Limits(hopeless_calls=3))
    for number in range(1, 4):
        feed(window, *call_to(address, number), at_s=number * 10)
        assert expire(window, number * 10 + 2) == []
        assert len(expire(window, number * 10 + 6)) == 1

    feed(window, *call_to(address, 4), *call_to("other.example.test", 5), at_s=100)

    assert expire(window, 102) == [(Why.COMPLETE, [1, 2])]
    assert len(expire(window, 106)) == 1

    feed(window, *call_to(address, 6, answered=True), at_s=200)
    feed(window, *call_to(address, 7), at_s=300)

    assert len(expire(window, 202)) == 1
    assert expire(window, 302) == []


def test_an_operation_that_is_a_list_is_no_call() -> None:
    window = Window()
    feed(window, span(1), span(2, 1, attributes={names.GEN_AI_OPERATION_NAME: ["chat"]}))

    assert expire(window, 2) == [(Why.COMPLETE, [1, 2])]


def test_the_transport_of_a_call_has_the_target_of_the_call() -> None:
    window = Window(Limits(hopeless_calls=1))
    for number in (1, 2):
        first, call = call_to("api.example.test", number)
        feed(window, first, call, span(3, 2, trace=number, kind=CLIENT), at_s=number * 10)

        assert len(expire(window, number * 10 + 2)) == number - 1
        expire(window, number * 10 + 6)


def test_the_table_of_targets_is_bounded() -> None:
    window = Window(Limits(hopeless_calls=1, targets=1))
    for number, address in enumerate(["a", "b", "a"], start=1):
        feed(window, *call_to(address, number), at_s=number * 10)

        assert expire(window, number * 10 + 2) == []
        assert len(expire(window, number * 10 + 6)) == 1


def test_a_late_span_is_handed_on_at_once_and_never_held_again() -> None:
    window = Window()
    feed(window, span(1))
    expire(window, 2)

    assert summary(feed(window, span(2, 1), at_s=3)) == [(Why.LATE, [2])]
    assert window.books.held == 0


def test_a_span_that_has_come_before_is_told_from_one_that_is_late() -> None:
    window = Window()
    feed(window, span(1), span(2, 1))
    expire(window, 2)

    again = feed(window, span(2, 1), span(3, 1), span(3, 1), at_s=3)

    assert summary(again) == [(Why.REPEATED, [2]), (Why.LATE, [3]), (Why.REPEATED, [3])]
    assert window.books == Books(5, {Why.COMPLETE: 2, Why.REPEATED: 2, Why.LATE: 1}, 0)


def test_a_released_trace_is_forgotten_in_the_end() -> None:
    window = Window(Limits(tombstone_ns=5 * SECOND_NS, remembered_traces=0))
    feed(window, span(1))
    expire(window, 2)
    expire(window, 7)

    assert feed(window, span(2, 1), at_s=8) == []
    assert window.books.held == 1


def test_the_memory_of_released_traces_is_bounded() -> None:
    window = Window(Limits(tombstones=2, remembered_traces=0))
    for trace in (1, 2, 3):
        feed(window, span(1, trace=trace))
    expire(window, 2)

    again = [summary(feed(window, span(2, 1, trace=trace), at_s=3)) for trace in (1, 2, 3)]

    assert again == [[], [(Why.LATE, [2])], [(Why.LATE, [2])]]


def test_the_memory_of_released_spans_is_bounded() -> None:
    window = Window(Limits(tombstone_spans=3, remembered_traces=0))
    for trace in (1, 2):
        feed(window, span(1, trace=trace), span(2, 1, trace=trace))
    expire(window, 2)

    again = [summary(feed(window, span(2, 1, trace=trace), at_s=3)) for trace in (1, 2)]

    assert again == [[], [(Why.REPEATED, [2])]]


def test_a_trace_is_cut_at_its_limit_but_never_loses_its_root() -> None:
    window = Window(Limits(trace_spans=2))

    passed = feed(window, span(3, 1), span(4, 1), span(5, 1), span(1))
    (released,) = window.expire(10 * SECOND_NS)

    assert summary(passed) == [(Why.TRACE_FULL, [5]), (Why.TRACE_FULL, [4])]
    assert summary([released]) == [(Why.COMPLETE, [3, 1])]
    assert released.missing == 2
    assert window.books == Books(4, {Why.COMPLETE: 2, Why.TRACE_FULL: 2}, 0)


def test_the_oldest_traces_make_room_for_what_comes() -> None:
    size = SPAN_OVERHEAD + len(span(1).raw)
    window = Window(Limits(held_bytes=2 * size))
    assert feed(window, span(1, trace=1), span(1, trace=2)) == []

    released = feed(window, span(1, trace=3))

    assert summary(released) == [(Why.NO_ROOM, [1])]
    assert released[0].spans[0].trace_id[-1] == 1
    assert window.held_bytes == 2 * size


def test_a_span_of_the_trace_that_made_room_is_late() -> None:
    window = Window(Limits(held_bytes=SPAN_OVERHEAD + len(span(2, 1).raw)))
    feed(window, span(1))

    released = feed(window, span(2, 1))

    assert summary(released) == [(Why.NO_ROOM, [1]), (Why.LATE, [2])]


def test_a_span_larger_than_everything_is_not_held_and_counted() -> None:
    window = Window(Limits(held_bytes=SPAN_OVERHEAD))

    assert summary(feed(window, span(1))) == [(Why.TOO_LARGE, [1])]
    assert window.books == Books(1, {Why.TOO_LARGE: 1}, 0)


def test_at_the_end_everything_is_handed_out() -> None:
    window = Window()
    feed(window, span(1), span(2, 7, trace=2))

    assert summary(window.flush(0)) == [(Why.SHUTDOWN, [1]), (Why.SHUTDOWN, [2])]
    assert window.books == Books(2, {Why.SHUTDOWN: 2}, 0)
    assert window.held_bytes == 0
