"""What is sent again: no thread, no clock, no network; only answers, and what follows of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.edges.retrying import (
    GIVEN_UP,
    REFUSED,
    REJECTED,
    TOO_LARGE,
    Round,
    Step,
)
from llmlat_processor.edges.sending import NotNow, Outcome, Refused, Taken, TooLarge
from llmlat_processor.settings import Delivery
from llmlat_processor.wire import Request
from tests.llmlat_processor.otlp import request, span

QUICK = Delivery(first_retry_s=1, longest_retry_s=5, give_up_s=20)
ABOUT_US = Refused("who are you?", is_about_us=True)
WRONG = Refused("no such field")
LATER = NotNow("busy")
LARGE = TooLarge("4 MiB")


def of(*numbers: int) -> Request:
    content = request([span(number) for number in numbers]).SerializeToString()
    return Request(content, len(numbers), unit=numbers)


def started(*requests: Request, jitter: float = 1.0, has_spans: bool = True) -> Round:
    return Round(requests, QUICK, now_s=100, jitter=lambda: jitter, has_spans=has_spans)


def answered(course: Round, *outcomes: Outcome, now_s: float = 100.0) -> Sequence[Step]:
    return [course.answered(outcome, now_s) for outcome in outcomes]


def units(steps: Sequence[Step]) -> list[object]:
    """What was settled at which step."""
    return [[each.unit for each in step.settled] for step in steps]


def test_what_is_taken_is_settled_together() -> None:
    course = started(of(1, 2), of(3))

    (step,) = answered(course, Taken())

    assert (step.sent, step.dropped, units([step])) == (3, 0, [[(1, 2), (3,)]])
    assert course.piece is None


def test_what_is_rejected_in_part_is_settled_all_the_same() -> None:
    (step,) = answered(started(of(1, 2), of(3)), Taken(2, "too old"))

    assert (step.sent, step.dropped, step.reason, step.words) == (1, 2, REJECTED, "too old")
    assert units([step]) == [[(1, 2), (3,)]]


def test_more_cannot_be_rejected_than_there_was() -> None:
    (step,) = answered(started(of(1)), Taken(9, "too old"))

    assert (step.sent, step.dropped) == (0, 1)


def test_pauses_grow_to_the_longest_and_it_is_the_same_that_is_sent() -> None:
    course = started(of(1), of(2))
    first = course.piece

    pauses = [step.pause_s for step in answered(course, *[LATER] * 5)]

    assert pauses == [1, 2, 4, 5, 5]
    assert course.piece is first


def test_pauses_are_shaken() -> None:
    assert answered(started(of(1), jitter=0.0), LATER)[0].pause_s == 0.5


def test_a_pause_that_is_asked_for_is_not_shortened() -> None:
    assert answered(started(of(1), jitter=0.0), NotNow("busy", after_s=7))[0].pause_s == 7


def test_it_is_given_up_where_the_next_time_would_be_too_late() -> None:
    course = started(of(1), of(2))

    assert answered(course, LATER, now_s=119) == [Step(words="busy", pause_s=1)]
    (step,) = answered(course, LATER, now_s=119)

    assert (step.dropped, step.reason, step.pause_s) == (2, GIVEN_UP, 0)
    assert units([step]) == [[(1,), (2,)]]


def test_who_is_at_fault_is_found_by_sending_each_alone() -> None:
    course = started(of(1), of(2, 3), of(4))

    steps = answered(course, WRONG, Taken(), WRONG, Taken())

    assert units(steps) == [[], [(1,)], [(2, 3)], [(4,)]]
    assert [step.sent for step in steps] == [0, 1, 0, 1]
    assert (steps[2].dropped, steps[2].reason) == (2, REFUSED)


def test_nobody_is_looked_for_where_it_is_we_who_are_refused() -> None:
    (step,) = answered(started(of(1), of(2)), ABOUT_US)

    assert (step.dropped, step.reason, units([step])) == (2, REFUSED, [[(1,), (2,)]])


def test_what_is_too_large_goes_in_halves_of_the_requests_and_then_of_the_spans() -> None:
    course = started(of(1), of(2), of(3, 4, 5))

    steps = answered(course, LARGE, Taken(), LARGE, Taken(), LARGE, LARGE, Taken())

    assert [step.sent for step in steps] == [0, 1, 0, 1, 0, 0, 2]
    assert (steps[5].dropped, steps[5].reason) == (1, TOO_LARGE)
    assert units(steps) == [[], [(1,)], [], [(2,)], [], [], [(3, 4, 5)]]
    assert course.piece is None


def test_an_answer_gives_the_next_piece_its_own_time_and_pauses() -> None:
    course = started(of(1), of(2))
    answered(course, WRONG, now_s=100)
    answered(course, LATER, LATER, now_s=115)
    answered(course, Taken(), now_s=118)

    (step,) = answered(course, LATER, now_s=130)

    assert step.pause_s == 1


def test_metrics_have_no_spans_to_be_halved_between() -> None:
    (step,) = answered(started(of(1, 2), has_spans=False), LARGE)

    assert (step.dropped, step.reason, units([step])) == (2, TOO_LARGE, [[(1, 2)]])


@pytest.mark.parametrize("poison", [b"", b"\xff\xff"])
def test_ex_09_what_cannot_be_read_is_dropped_and_not_halved_for_ever(poison: bytes) -> None:
    course = started(Request(poison, 3))

    (step,) = answered(course, LARGE)

    assert (step.dropped, step.reason, course.piece) == (3, TOO_LARGE, None)


OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Taken, st.integers(0, 3)),
    st.sampled_from([LATER, NotNow("busy", after_s=30), LARGE, LARGE, WRONG, ABOUT_US]),
)
GROUPS = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@given(GROUPS, st.data())
def test_each_request_is_settled_once_and_each_span_is_in_the_books_once(
    sizes: list[int], data: st.DataObject
) -> None:
    numbers = iter(range(1, 100))
    requests = [of(*(next(numbers) for _ in range(size))) for size in sizes]
    course = started(*requests)
    settled: Counter[object] = Counter()
    done = 0
    now_s = 100.0
    while course.piece is not None:
        step = course.answered(data.draw(OUTCOMES), now_s)
        now_s += step.pause_s
        done += step.sent + step.dropped
        settled.update(each.unit for each in step.settled)
        assert done + course.spans == sum(sizes)
        assert bool(step.dropped) == bool(step.reason)
    assert settled == Counter(each.unit for each in requests)


@given(st.integers(1, 40), st.integers(1, 40))
def test_of_what_is_too_large_all_that_fits_arrives(spans: int, large: int) -> None:
    """A destination that takes anything but one of the spans."""
    whole = of(*range(1, spans + 1))
    course = started(whole, of(99))
    taken: list[bytes] = []
    steps: list[Step] = []
    while (piece := course.piece) is not None:
        fits = not _has(piece.content, large)
        steps.append(course.answered(Taken() if fits else LARGE, 100))
        taken += [piece.content] if fits else []

    numbers = range(1, spans + 1)
    arrived = [number for number in numbers for each in taken if _has(each, number)]
    assert arrived == [number for number in numbers if number != large]
    assert sum(step.dropped for step in steps) == (1 if large <= spans else 0)
    assert sum(len(step.settled) for step in steps) == 2


def _has(content: bytes, number: int) -> bool:
    return number.to_bytes(8, "big") in content
