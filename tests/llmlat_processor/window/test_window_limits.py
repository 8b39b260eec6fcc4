"""What a trace that is too large may keep, and what it leaves to others."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from llmlat_processor.model import Span
from llmlat_processor.pipeline import process
from llmlat_processor.window import SECOND_NS, SPAN_OVERHEAD, Limits, Released, Why, Window
from llmlat_processor.wire import as_sent
from tests.cases.case_format import EPOCH_NS
from tests.llmlat_processor.windowed import APP, expire, feed, span, summary
from tests.properties.canonical import sections

MS_NS = 1_000_000


def timed(number: int, parent: int, start_ms: int, end_ms: int, name: str = "job") -> Span:
    made = span(number, parent)
    start_ns, end_ns = EPOCH_NS + start_ms * MS_NS, EPOCH_NS + end_ms * MS_NS
    ids = made.trace_id, made.span_id, made.parent_id
    return as_sent(Span(*ids, name, made.kind, start_ns, end_ns, APP))


def pool(jobs: int) -> list[Span]:
    """Jobs of one kind as they end, twenty of them at a time."""
    random, free = Random(1), [5] * 20
    made = []
    for number in range(10, 10 + jobs):
        worker = free.index(min(free))
        end_ms = free[worker] + random.randint(5, 60)
        made.append(timed(number, 2, free[worker], end_ms))
        free[worker] = end_ms + 1
    return sorted(made, key=lambda job: job.end_ns)


def ends(jobs: int) -> list[Span]:
    return [timed(2, 1, 3, 10 * jobs, "all jobs"), timed(1, 0, 0, 10 * jobs, "root")]


def let_go(released: Sequence[Released], why: Why) -> list[Span]:
    return [one for each in released if each.why is why for one in each.fresh]


def test_above_the_cap_equal_leaves_that_are_hidden_go_and_the_path_stays_as_it_was() -> None:
    window, jobs = Window(Limits(trace_spans=300)), pool(1_000)

    early = feed(window, *jobs, *ends(1_000))
    (last,) = window.expire(2 * SECOND_NS)

    collapsed = let_go(early, Why.COLLAPSED)
    assert len(collapsed) + len(last.spans) == 1_002
    assert len(last.spans) <= 300
    assert not let_go(early, Why.TRACE_FULL)
    assert (last.why, last.missing) == (Why.COMPLETE, 0)
    (whole,), (rest,) = (process(s).paths.roots for s in ([*jobs, *ends(1_000)], last.spans))
    assert sections(rest.e2e) == sections(whole.e2e)
    assert rest.ledger.busy_ns == whole.ledger.busy_ns
    assert window.books.released == {Why.COLLAPSED: len(collapsed), Why.COMPLETE: len(last.spans)}


def test_a_path_that_nobody_can_foresee_is_still_one_through_what_was_at_work() -> None:
    """All begin at once, so each may be the one whose end another one that is to come awaits."""
    window = Window(Limits(trace_spans=200))
    jobs = [timed(n, 2, 5, 6 + n % 97) for n in range(10, 1_010)]

    early = feed(window, *jobs, *ends(20))
    (last,) = window.expire(2 * SECOND_NS)

    assert {one.why for one in early} == {Why.COLLAPSED}
    (whole,), (rest,) = (process(s).paths.roots for s in ([*jobs, *ends(20)], last.spans))
    assert rest.e2e.totals_ns == whole.e2e.totals_ns
    assert rest.ledger.busy_ns == whole.ledger.busy_ns


def test_what_collapsed_is_known_when_it_comes_again() -> None:
    window, jobs = Window(Limits(trace_spans=200)), pool(300)
    gone = let_go(feed(window, *jobs), Why.COLLAPSED)

    assert {each.why for each in feed(window, *gone)} == {Why.REPEATED}
    feed(window, *ends(300))
    window.expire(2 * SECOND_NS)
    assert {each.why for each in feed(window, *gone)} == {Why.REPEATED}


def test_a_leaf_whose_child_has_gone_before_is_none() -> None:
    window, jobs = Window(Limits(trace_spans=60)), pool(55)
    children = [timed(1_000 + n, 10 + n, 20, 21, "child") for n in range(55)]
    feed(window, *children)
    assert len(expire(window, 60)) == 1

    early = feed(window, *jobs, at_s=61)

    assert {each.why for each in early} == {Why.TRACE_FULL}


def test_where_nothing_is_hidden_what_comes_over_the_cap_passes_and_is_missing() -> None:
    window = Window(Limits(trace_spans=100))
    in_turn = [timed(n, 2, 10 * n, 10 * n + 5) for n in range(10, 210)]

    early = feed(window, *in_turn, *ends(3_000))
    (last,) = window.expire(2 * SECOND_NS)

    assert {each.why for each in early} == {Why.TRACE_FULL}
    assert (last.missing, len(last.spans)) == (102, 100)
    assert any(not one.parent_id for one in last.spans)


def test_a_trace_of_large_spans_leaves_room_for_others() -> None:
    window = Window(Limits(trace_bytes=3 * SPAN_OVERHEAD))
    large = [span(number, 1, scope="x" * 10) for number in range(2, 9)]

    early = feed(window, *large, span(1))

    assert {each.why for each in early} == {Why.TRACE_FULL}
    assert window.held_bytes <= 3 * SPAN_OVERHEAD
    ((why, ids),) = expire(window, 2)
    assert (why, ids[-1]) == (Why.COMPLETE, 1)


def test_a_span_that_is_larger_than_a_trace_may_be_is_held_by_itself() -> None:
    window = Window(Limits(trace_bytes=1))

    assert summary(feed(window, span(1), span(2, 1))) == [(Why.TRACE_FULL, [2])]
    assert expire(window, 2) == [(Why.COMPLETE, [1])]


def test_above_the_limit_of_traces_the_oldest_go() -> None:
    window = Window(Limits(traces=2))

    early = feed(window, span(1, trace=1), span(1, trace=2), span(1, trace=3))

    assert [(one.why, one.spans[0].trace_id[-1]) for one in early] == [(Why.NO_ROOM, 1)]
    assert window.books.held == 2


def test_a_late_span_makes_no_room_for_itself() -> None:
    window = Window(Limits(held_bytes=SPAN_OVERHEAD + len(span(2, 1).raw)))
    feed(window, span(1, trace=2))
    expire(window, 2)
    feed(window, span(1), at_s=3)

    assert summary(feed(window, span(2, 1, trace=2), at_s=3)) == [(Why.LATE, [2])]
    assert window.books.held == 1
