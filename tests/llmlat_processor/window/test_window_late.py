"""What becomes of spans that come after their trace was let go."""

from __future__ import annotations

from llmlat_processor.window import SECOND_NS, Books, Limits, Released, Why, Window
from llmlat_processor.wire.skeletons import Skeleton
from llmlat_semconv import attributes as names
from tests.llmlat_processor.windowed import ENGINE, expire, feed, span, summary

TOOL = {names.GEN_AI_OPERATION_NAME: "execute_tool"}
TRACE_ID = span(1).trace_id


def explained(limits: Limits | None = None) -> Window:
    """A window that has let go of a trace worth it, at 2 s."""
    window = Window(limits)
    feed(window, span(1, attributes=TOOL), span(2, 1))
    assert expire(window, 2) == [(Why.COMPLETE, [1, 2])]
    return window


def revised(window: Window, at_s: float) -> list[tuple[list[int], int, int]]:
    released = window.expire(round(at_s * SECOND_NS))
    assert all(one.why is Why.REVISED and not one.fresh for one in released)
    return [(ids, one.late, one.revision) for one in released for _, ids in summary([one])]


def test_late_spans_go_at_once_and_when_it_is_quiet_the_whole_trace_is_there_once_more() -> None:
    window = explained()

    assert summary(feed(window, span(3, 1), at_s=3)) == [(Why.LATE, [3])]
    assert summary(feed(window, span(4, 1), at_s=4)) == [(Why.LATE, [4])]
    assert revised(window, 5.9) == []
    (one,) = window.expire(6 * SECOND_NS)

    assert summary([one]) == [(Why.REVISED, [1, 2, 3, 4])]
    assert all(isinstance(each, Skeleton) for each in one.spans)
    assert (one.late, one.revision, one.already) == (2, 2, 4)
    assert window.books == Books(4, {Why.COMPLETE: 2, Why.LATE: 2}, 0)
    assert revised(window, 100) == []


def test_what_was_late_adds_up_until_an_account_of_it_is_published() -> None:
    window = explained()
    feed(window, span(3, 1), at_s=3)
    assert revised(window, 5) == [([1, 2, 3], 1, 2)]

    feed(window, span(4, 1), at_s=10)
    assert revised(window, 14) == [([1, 2, 3, 4], 2, 2)]
    window.published(TRACE_ID)

    feed(window, span(5, 1), at_s=20)
    assert revised(window, 28) == [([1, 2, 3, 4, 5], 1, 3)]


def test_the_late_ones_are_the_last_whoever_sent_them() -> None:
    window = explained()
    feed(window, span(3, 1, resource=ENGINE), span(4, 1), span(5, 1, resource=ENGINE), at_s=3)
    (one,) = window.expire(5 * SECOND_NS)

    assert numbers(one)[-one.late :] == [3, 4, 5]


def numbers(released: Released) -> list[int]:
    ((_, ids),) = summary([released])
    return ids


def test_a_trace_that_trickles_in_is_looked_at_less_and_less() -> None:
    window = explained(Limits(tombstone_ns=10_000 * SECOND_NS))
    looks = []
    for number in range(3, 603):
        at_s = 3 * number
        feed(window, span(number, 1), at_s=at_s)
        looks += [at_s for _ in window.expire(round((at_s + 2.5) * SECOND_NS))]

    assert len(looks) == 1


def test_what_comes_again_is_not_late_and_changes_nothing() -> None:
    window = explained()

    assert summary(feed(window, span(2, 1), at_s=3)) == [(Why.REPEATED, [2])]
    assert revised(window, 10) == []


def test_a_trace_that_speaks_of_nothing_is_not_explained_anew() -> None:
    window = Window()
    feed(window, span(1), span(2, 1))
    expire(window, 2)
    feed(window, span(3, 1), at_s=3)

    assert window.skeleton_bytes == 0
    assert revised(window, 10) == []


def test_whoever_explains_every_trace_keeps_every_one() -> None:
    window = Window(keeps=lambda spans: True)
    feed(window, span(1))
    expire(window, 2)
    feed(window, span(3, 1), at_s=3)

    assert revised(window, 5) == [([1, 3], 1, 2)]


def test_a_trace_of_which_a_part_is_missing_is_not_explained_anew_either() -> None:
    window = Window(Limits(trace_spans=2))
    feed(window, span(1, attributes=TOOL), span(2, 1), span(3, 1))
    expire(window, 2)
    feed(window, span(4, 1), at_s=3)

    assert revised(window, 5) == []


def test_above_the_limit_the_oldest_are_forgotten_and_counted() -> None:
    window = Window(Limits(revision_bytes=3_000))
    for trace in (1, 2, 3):
        feed(window, span(1, trace=trace, attributes=TOOL), at_s=trace)
        expire(window, trace + 2)
        assert window.skeleton_bytes <= 3_000
    late: list[Released] = []
    for trace in (1, 2, 3):
        late += feed(window, span(2, 1, trace=trace), at_s=6)

    assert [one.why for one in late] == [Why.LATE] * 3
    assert window.books.forgotten >= 1
    ids = [one.spans[0].trace_id[-1] for one in window.expire(8 * SECOND_NS)]
    assert ids
    assert 1 not in ids


def test_a_trace_does_not_grow_for_ever_after_its_end() -> None:
    window = explained(Limits(trace_spans=3))
    feed(window, *(span(number, 1) for number in range(3, 9)), at_s=3)

    assert window.skeleton_bytes == 0
    assert window.books.forgotten == 3


def test_at_the_end_what_was_late_is_handed_out_too() -> None:
    window = explained()
    feed(window, span(3, 1), at_s=3)

    assert summary(window.flush(3 * SECOND_NS)) == [(Why.REVISED, [1, 2, 3])]


def test_long_after_its_end_a_span_of_a_trace_is_handed_on_and_not_held_again() -> None:
    window = explained()
    expire(window, 700)
    assert window.skeleton_bytes == 0

    assert summary(feed(window, span(3, 1), at_s=90_000)) == [(Why.LATE, [3])]
    assert revised(window, 90_010) == []
    assert window.books.held == 0


def test_nothing_stays_of_traces_but_what_is_bounded() -> None:
    limits = Limits(tombstones=10, remembered_traces=8, revision_bytes=20_000)
    window = Window(limits)
    for trace in range(1, 4_001):
        at_s = trace / 100
        feed(window, span(2, 1, trace=trace, attributes=TOOL), at_s=at_s)
        feed(window, span(1, trace=trace), at_s=at_s)
        window.expire(round(at_s * SECOND_NS))
    window.expire(100 * SECOND_NS)

    past = window._past
    assert (len(window._held), window.held_bytes, len(window._looks)) == (0, 0, 0)
    assert (len(past._rootless), len(past._looks)) == (0, 0)
    assert len(past._graves._stones) <= 10
    assert len(past._graves._past) <= 8
    assert len(past._skeletons) <= 10
    assert window.skeleton_bytes <= 20_000


def test_traces_that_are_picked_up_again_leave_no_looks_behind() -> None:
    window = Window(Limits(traces=2, hold_max_ns=10**18))
    for number in range(6_000):
        feed(window, span(number + 2, 1, trace=number % 3 + 1), at_s=number / 1_000)
        window.expire(round(number / 1_000 * SECOND_NS))

    assert len(window._looks) < 4_100
