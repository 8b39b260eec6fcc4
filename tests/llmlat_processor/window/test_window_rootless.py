"""What becomes of a trace whose root comes late, or never."""

from __future__ import annotations

from llmlat_processor.window import MIB, SECOND_NS, Books, Limits, Released, Why, Window
from llmlat_processor.wire.skeletons import Skeleton
from tests.llmlat_processor.windowed import expire, feed, span, summary

TRACE_ID = span(1).trace_id
HOUR_S = 3_600


def waiting(limits: Limits | None = None) -> Window:
    """A window that has let go of two spans of a trace, at 60 s."""
    window = Window(limits)
    feed(window, span(2, 1), span(3, 1))
    assert expire(window, 60) == [(Why.HELD_LONGEST, [2, 3])]
    return window


def released(window: Window, at_s: float) -> Released:
    (one,) = window.expire(round(at_s * SECOND_NS))
    return one


def test_when_the_root_comes_what_was_let_go_is_there_to_be_explained() -> None:
    window = waiting()
    feed(window, span(4, 1), at_s=70)
    feed(window, span(1), at_s=71)

    one = released(window, 73)

    assert summary([one]) == [(Why.COMPLETE, [2, 3, 4, 1])]
    assert [isinstance(each, Skeleton) for each in one.spans] == [True, True, False, False]
    assert [each.name for each in one.fresh] == ["span 4", "span 1"]
    assert window.books == Books(4, {Why.HELD_LONGEST: 2, Why.COMPLETE: 2}, 0)


def test_what_comes_later_is_held_as_long_again() -> None:
    window = waiting()
    feed(window, span(4, 1), at_s=100)
    feed(window, span(5, 1), at_s=150)

    assert expire(window, 159.9) == []
    assert expire(window, 160) == [(Why.HELD_LONGEST, [4, 5])]

    feed(window, span(1), at_s=HOUR_S)

    assert expire(window, HOUR_S + 2) == [(Why.COMPLETE, [2, 3, 4, 5, 1])]


def test_what_was_let_go_is_known_when_it_comes_again() -> None:
    window = waiting()

    assert summary(feed(window, span(2, 1), at_s=61)) == [(Why.REPEATED, [2])]
    assert window.books.held == 0

    feed(window, span(1), at_s=62)

    assert summary(feed(window, span(3, 1), at_s=62)) == [(Why.REPEATED, [3])]
    assert expire(window, 64) == [(Why.COMPLETE, [2, 3, 1])]
    assert summary(feed(window, span(2, 1), at_s=65)) == [(Why.REPEATED, [2])]


def test_a_trace_that_made_room_without_its_root_goes_on_as_well() -> None:
    window = Window(Limits(traces=1))
    feed(window, span(2, 1))

    assert summary(feed(window, span(1, trace=2))) == [(Why.NO_ROOM, [2])]

    assert summary(feed(window, span(1))) == [(Why.NO_ROOM, [1])]
    assert expire(window, 2) == [(Why.COMPLETE, [2, 1])]


def test_a_root_is_not_awaited_for_ever() -> None:
    window = waiting()
    feed(window, span(4, 1), at_s=HOUR_S)
    expire(window, HOUR_S + 60)

    expire(window, 7 * HOUR_S + 59)
    assert window.awaits_root_of(TRACE_ID)
    expire(window, 7 * HOUR_S + 60)
    assert not window.awaits_root_of(TRACE_ID)

    assert (window.books.forgotten, window.skeleton_bytes) == (3, 0)
    assert summary(feed(window, span(1), at_s=7 * HOUR_S + 61)) == [(Why.LATE, [1])]


def test_above_the_limit_the_oldest_skeletons_are_forgotten_and_counted() -> None:
    window = Window(Limits(revision_bytes=3_000))
    for trace in (1, 2, 3):
        feed(window, span(2, 1, trace=trace), at_s=trace)
        expire(window, 60 + trace)
        assert window.skeleton_bytes <= 3_000

    assert window.books.forgotten == 1
    assert summary(feed(window, span(1, trace=1), at_s=65)) == [(Why.LATE, [1])]
    feed(window, span(1, trace=3), at_s=65)
    assert expire(window, 67) == [(Why.COMPLETE, [2, 1])]


def test_skeletons_that_are_forgotten_while_more_is_held_are_missing() -> None:
    window = Window(Limits(revision_bytes=3_000))
    feed(window, span(2, 1))
    expire(window, 60)
    feed(window, span(1), at_s=100)
    for trace in (2, 3):
        feed(window, span(2, 1, trace=trace), at_s=41)
    expire(window, 101)

    one = released(window, 102)

    assert (one.why, one.already, one.missing) == (Why.COMPLETE, 0, 1)


def test_after_a_restart_the_skeletons_of_before_are_taken_back() -> None:
    packed = b""
    window = Window()
    feed(window, span(2, 1))
    packed = released(window, 60).packed
    feed(window, span(3, 1), at_s=61)
    (last,) = window.flush(62 * SECOND_NS)
    assert last.packed

    after = Window()
    after.restore(packed, 0)
    after.restore(last.packed, 0)
    assert after.awaits_root_of(TRACE_ID)
    assert summary(feed(after, span(2, 1))) == [(Why.REPEATED, [2])]
    feed(after, span(1))

    assert expire(after, 2) == [(Why.COMPLETE, [2, 3, 1])]
    assert after.books == Books(2, {Why.REPEATED: 1, Why.COMPLETE: 1}, 0)


def test_skeletons_are_taken_back_too_when_more_of_their_trace_is_held_by_then() -> None:
    window = waiting()
    one = Window()
    feed(one, span(2, 1))
    packed = released(one, 60).packed

    later = Window()
    feed(later, span(1))
    later.restore(packed, 0)
    later.restore(b"", 0)

    assert expire(later, 2) == [(Why.COMPLETE, [2, 1])]
    assert window.awaits_root_of(TRACE_ID)


def test_a_trace_with_its_root_that_is_never_quiet_goes_whole_and_does_not_go_on() -> None:
    window = Window()
    feed(window, span(1))
    for second in range(60):
        feed(window, span(second + 2, 1), at_s=second)

    one = released(window, 60)

    assert (one.why, len(one.spans), one.already, one.packed) == (Why.HELD_LONGEST, 61, 0, b"")
    assert summary(feed(window, span(99, 1), at_s=60)) == [(Why.LATE, [99])]


def test_a_skeleton_takes_no_more_than_two_hundred_bytes() -> None:
    """Ids, stamps and names of one trace are much alike, and an envelope is kept once."""
    window = Window()
    spans = [span(number, 1, attributes={"app.tenant": "x" * 300}) for number in range(2, 1_002)]
    feed(window, *spans)
    expire(window, 60)

    assert sum(len(one.raw) for one in spans) > MIB // 3
    assert window.skeleton_bytes < 200 * len(spans)
