"""What whoever keeps the spans is told: of each request once, when nothing of it is to be sent."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from threading import Event

import grpc  # type: ignore[import-untyped]
import pytest

from llmlat_processor.edges.exporter import SHUTDOWN, Counts, Exporter
from llmlat_processor.edges.retrying import GIVEN_UP, REFUSED, REJECTED, TOO_LARGE
from llmlat_processor.settings import Delivery, Destination
from llmlat_processor.wire import Request
from tests.llmlat_processor.sink import (
    WAIT_S,
    Answer,
    asking_to_wait,
    failing,
    rejecting,
    saying,
    sink,
)
from tests.llmlat_processor.test_exporter import QUICK, exporting, free_address, held_up, of

BUSY = failing(grpc.StatusCode.UNAVAILABLE)
WRONG = failing(grpc.StatusCode.INVALID_ARGUMENT)
STRANGER = failing(grpc.StatusCode.UNAUTHENTICATED)
LARGE = failing(grpc.StatusCode.RESOURCE_EXHAUSTED)
NEVER = asking_to_wait(grpc.StatusCode.UNAVAILABLE, 3_600)
TAKEN = saying(b"")

BOTH, ALONE = [[2, 3]], [[2], [3]]
COURSES: dict[str, tuple[list[Answer], list[list[int]], dict[str, int]]] = {
    "taken": ([TAKEN], BOTH, {}),
    "taken at last": ([BUSY, BUSY, TAKEN], BOTH, {}),
    "rejected in part": ([rejecting(1)], BOTH, {REJECTED: 1}),
    "given up": ([BUSY, NEVER], BOTH, {GIVEN_UP: 4}),
    "one is refused": ([WRONG, WRONG, TAKEN], ALONE, {REFUSED: 1}),
    "we are refused": ([STRANGER], BOTH, {REFUSED: 4}),
    "too large together": ([LARGE, TAKEN, TAKEN], ALONE, {}),
    "one is too large": ([LARGE, TAKEN, LARGE, TAKEN, BUSY, TAKEN], ALONE, {}),
    "a span is too large": ([LARGE] * 3 + [TAKEN] + [LARGE] * 2 + [TAKEN], ALONE, {TOO_LARGE: 2}),
    "half of one is refused": ([LARGE, TAKEN, LARGE, WRONG, TAKEN], ALONE, {REFUSED: 1}),
    "half of one is given up": ([LARGE, TAKEN, LARGE, TAKEN, NEVER], ALONE, {GIVEN_UP: 2}),
}


def numbered(number: int, *spans: int) -> Request:
    return of(*spans)._replace(unit=number)


@pytest.mark.parametrize(("answers", "groups", "dropped"), COURSES.values(), ids=COURSES)
def test_each_request_is_settled_once_whatever_becomes_of_it(
    answers: list[Answer], groups: list[list[int]], dropped: dict[str, int]
) -> None:
    go_on = Event()
    told: list[list[object]] = []

    def settled(requests: Sequence[Request]) -> None:
        told.append([request.unit for request in requests])

    with sink(held_up(go_on), *answers) as destination:
        with exporting(destination.address, settled=settled) as exporter:
            exporter.put(numbered(1, 1))
            destination.wait_for_requests(1)
            exporter.put(numbered(2, 2))
            exporter.put(numbered(3, 3, 4, 5))
            go_on.set()
        assert told == [[1], *groups]
        assert exporter.counts == Counts(5, 5 - sum(dropped.values()), 0, dropped)
        assert len(destination.requests) == 1 + len(answers)


def test_what_the_end_leaves_over_is_not_settled() -> None:
    told: list[Sequence[Request]] = []
    delivery = Delivery(drain_s=0.05)
    with exporting(free_address(), delivery, settled=told.append) as exporter:
        exporter.put(of(1))
        exporter.put(of(2))

    assert (told, exporter.counts) == ([], Counts(2, 0, 0, {SHUTDOWN: 2}))


def test_what_is_in_flight_at_the_end_is_not_given_up_but_left_over() -> None:
    go_on = Event()
    told: list[Sequence[Request]] = []
    delivery = Delivery(drain_s=0, give_up_s=0, deadline_s=1_000)
    with sink(held_up(go_on)) as destination:
        with exporting(destination.address, delivery, settled=told.append) as exporter:
            exporter.put(of(1))
            destination.wait_for_requests(1)
        go_on.set()

    assert (told, exporter.counts) == ([], Counts(1, 0, 0, {SHUTDOWN: 1}))


def test_half_of_a_request_that_is_left_over_leaves_all_of_it_over() -> None:
    """It comes again as a whole: twice is better than never."""
    go_on = Event()
    told: list[Sequence[Request]] = []
    delivery = Delivery(first_retry_s=0.001, drain_s=0, deadline_s=1_000)
    with sink(LARGE, TAKEN, held_up(go_on)) as destination:
        with exporting(destination.address, delivery, settled=told.append) as exporter:
            exporter.put(of(1, 2))
            destination.wait_for_requests(3)
        go_on.set()

    assert (told, exporter.counts) == ([], Counts(2, 1, 0, {SHUTDOWN: 1}))


def test_it_is_told_from_the_thread_that_sends_and_may_ask_and_add() -> None:
    names: list[str] = []
    with (
        sink() as destination,
        exporting(destination.address, settled=lambda _: again()) as exporter,
    ):

        def again() -> None:
            names.append(threading.current_thread().name)
            if exporter.counts.sent < 3 and exporter.has_room:
                exporter.put(of(1))

        exporter.put(of(1))
        destination.wait_for_spans(3)

    assert len(names) == 3
    assert {name.rpartition("_")[0] for name in names} == {"llmlat-exporter"}
    assert exporter.counts == Counts(3, 3, 0, {})


def test_a_fault_of_who_is_told_ends_the_work_and_not_in_silence() -> None:
    go_on = Event()

    def broken(_requests: Sequence[Request]) -> None:
        raise ZeroDivisionError

    with sink(held_up(go_on)) as destination:
        exporter = Exporter(Destination(destination.address, delivery=QUICK), settled=broken)
        exporter.put(of(1))
        destination.wait_for_requests(1)
        exporter.put(of(2))
        go_on.set()
        assert isinstance(exporter.work.exception(WAIT_S), ZeroDivisionError)
        assert exporter.has_ended
        assert not exporter.has_room
        exporter.put(of(3))
        assert exporter.counts == Counts(3, 1, 1, {SHUTDOWN: 1})
        with pytest.raises(ZeroDivisionError):
            exporter.stop()

    assert exporter.counts == Counts(3, 1, 0, {SHUTDOWN: 2})
