"""What holds for the window, whatever comes and whenever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.model import CLIENT, INTERNAL, SERVER, Resource, Span
from llmlat_processor.window import SPAN_OVERHEAD, Limits, Released, Why, Window
from llmlat_processor.wire import as_sent
from llmlat_processor.wire.skeletons import Skeleton

HERE = Resource({}, service="app", process="app", domain="host", weak=False)
Feeds = list[tuple[Span, int]]


def make(trace: int, number: int, parent: int, kind: int, size: int) -> Span:
    identity, parent_id = number.to_bytes(8, "big"), parent.to_bytes(8, "big") if parent else b""
    trace_id, name = trace.to_bytes(16, "big"), "x" * size
    return as_sent(Span(trace_id, identity, parent_id, name, kind, 1, 2, HERE))


SPANS = st.builds(
    make,
    trace=st.integers(1, 4),
    number=st.integers(1, 9),
    parent=st.integers(0, 9),
    kind=st.sampled_from([INTERNAL, CLIENT, SERVER]),
    size=st.integers(0, 300),
)
FEEDS = st.lists(st.tuples(SPANS, st.integers(0, 5)), max_size=30)  # the pause before each
LIMITS = st.builds(
    Limits,
    idle_ns=st.integers(0, 6),
    grace_ns=st.integers(0, 12),
    hold_max_ns=st.integers(0, 30),
    tombstone_ns=st.integers(0, 50),
    trace_spans=st.integers(1, 5),
    held_bytes=st.integers(SPAN_OVERHEAD, 6 * SPAN_OVERHEAD),
    skeleton_ns=st.integers(0, 50),
    traces=st.integers(1, 4),
    trace_bytes=st.integers(SPAN_OVERHEAD, 4 * SPAN_OVERHEAD),
    revision_bytes=st.integers(0, 6_000),
    tombstones=st.integers(0, 3),
    remembered_traces=st.integers(0, 3),
    hopeless_calls=st.integers(0, 3),
    targets=st.integers(1, 2),
)
PLENTY: Any = {
    "trace_spans": 100,
    "trace_bytes": 100 * SPAN_OVERHEAD,
    "held_bytes": 100 * SPAN_OVERHEAD,
    "traces": 100,
}
ROOMY = Limits(idle_ns=6, grace_ns=6, hold_max_ns=10_000)


def run(window: Window, feeds: Feeds) -> Iterable[tuple[int, list[Released]]]:
    """Every step's instant and what came out of it."""
    now_ns = 0
    for span, pause_ns in feeds:
        now_ns += pause_ns
        yield now_ns, [*window.expire(now_ns), *window.feed(span, now_ns)]


@given(FEEDS, LIMITS)
def test_the_books_balance_and_no_limit_is_passed_at_any_time(feeds: Feeds, limits: Limits) -> None:
    window = Window(limits)
    out: Counter[Why] = Counter()
    for fed, (_, released) in enumerate(run(window, feeds), start=1):
        for one in released:
            out[one.why] += len(one.fresh)
            assert len(one.fresh) <= limits.trace_spans
        books = window.books
        assert books.received == fed
        assert Counter(books.released) == out
        assert books.received == out.total() + books.held
        assert window.held_bytes <= limits.held_bytes
        assert window.skeleton_bytes <= limits.revision_bytes

    window.flush(1_000)
    assert (window.books.held, window.held_bytes) == (0, 0)


@given(FEEDS, LIMITS)
def test_every_span_is_let_go_once_and_is_a_skeleton_after_that(
    feeds: Feeds, limits: Limits
) -> None:
    window = Window(limits)
    released = [one for _, several in run(window, feeds) for one in several]
    released += window.flush(1_000)

    fresh = [id(span) for one in released for span in one.fresh]
    assert sorted(fresh) == sorted(id(span) for span, _ in feeds)
    for one in released:
        were_sent = [isinstance(span, Skeleton) for span in one.spans]
        assert were_sent == [True] * one.already + [False] * len(one.fresh)
        assert len({span.trace_id for span in one.spans}) == 1


@given(FEEDS, LIMITS, st.integers(1, 7))
def test_several_spans_at_once_are_taken_as_one_after_the_other(
    feeds: Feeds, limits: Limits, size: int
) -> None:
    at_once, singly = Window(limits), Window(limits)
    for step, first in enumerate(range(0, len(feeds), size)):
        batch = [span for span, _ in feeds[first : first + size]]
        one_by_one = [out for span in batch for out in singly.feed(span, step)]
        assert told(at_once.feed_all(batch, step)) == told(one_by_one)
        assert told(at_once.expire(step)) == told(singly.expire(step))
    assert at_once.books == singly.books


def told(released: Iterable[Released]) -> list[object]:
    return [
        (one.why, [span.raw for span in one.spans], one.missing, one.already, one.late)
        for one in released
    ]


@given(FEEDS, LIMITS)
def test_no_trace_is_held_longer_than_allowed(feeds: Feeds, limits: Limits) -> None:
    window = Window(replace(limits, **PLENTY))
    first_ns: dict[bytes, int] = {}
    now_ns = 0
    for (span, _), (now_ns, released) in zip(feeds, run(window, feeds), strict=True):
        for one in released:
            first_ns.pop(one.spans[0].trace_id, None)
        assert all(now_ns - first < limits.hold_max_ns for first in first_ns.values())
        if not any(span in one.fresh for one in released):
            first_ns.setdefault(span.trace_id, now_ns)

    window.expire(now_ns + limits.hold_max_ns)
    assert window.books.held == 0


@given(FEEDS, st.randoms())
def test_the_order_of_spans_does_not_change_what_a_trace_consists_of(
    feeds: Feeds, random: object
) -> None:
    spans = [span for span, _ in feeds]
    shuffled = list(spans)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert contents(spans) == contents(shuffled)


def contents(spans: list[Span]) -> dict[bytes, tuple[Why, Counter[Span]]]:
    window = Window(ROOMY)
    for span in spans:
        assert window.feed(span, 0) == ()
    released = [*window.expire(6), *window.expire(10_000)]
    assert sum(len(one.spans) for one in released) == len(spans)
    return {one.spans[0].trace_id: (one.why, Counter(one.spans)) for one in released}
