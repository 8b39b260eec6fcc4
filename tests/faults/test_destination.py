"""A destination that is down, slow, flapping, or says no: nothing is lost that it would take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import grpc  # type: ignore[import-untyped]
import pytest

from tests.faults.destinations import place
from tests.faults.ledger import (
    arrived,
    check_all_came,
    check_each_came_once,
    check_each_has_its_lane,
)
from tests.faults.load import batches, ids_of, load, whole_traces
from tests.faults.processor_run import Site, pause, wait_until
from tests.llmlat_processor.http_sink import Reply, http_sink
from tests.llmlat_processor.sink import Answer, Arrivals, asking_to_wait, failing, sink

pytestmark = pytest.mark.faults

DOWN_S: Final = 10.0
SLOW_S: Final = 1.0
FLAPS: Final = 5

_Code: Final = grpc.StatusCode

RETRYABLE: Final = (
    _Code.CANCELLED,
    _Code.DEADLINE_EXCEEDED,
    _Code.ABORTED,
    _Code.OUT_OF_RANGE,
    _Code.UNAVAILABLE,
    _Code.DATA_LOSS,
)
PERMANENT: Final = (
    _Code.UNKNOWN,
    _Code.INVALID_ARGUMENT,
    _Code.NOT_FOUND,
    _Code.ALREADY_EXISTS,
    _Code.PERMISSION_DENIED,
    _Code.FAILED_PRECONDITION,
    _Code.UNIMPLEMENTED,
    _Code.INTERNAL,
    _Code.UNAUTHENTICATED,
)
RETRYABLE_HTTP: Final = (429, 502, 503, 504)
PERMANENT_HTTP: Final = (301, 400, 401, 403, 404, 405, 409, 415, 500, 501)


def test_down_for_a_while_it_gets_everything_when_it_is_up(tmp_path: Path) -> None:
    todo = batches(120)
    with place() as destination:
        site = Site(tmp_path, destination.address)
        with site.running() as processor, load(site.grpc, todo, every_s=0.05) as senders:
            wait_until(lambda: destination.spans > 0)
            destination.down()
            pause(DOWN_S)
            destination.up()
            senders.join()
            processor.wait_until_empty()
            assert processor.end().code == 0

        assert senders.acknowledged == ids_of(todo)
        check_each_came_once(ids_of(todo), *destination.all)
        check_each_has_its_lane(ids_of(todo), *destination.all)


def test_down_for_longer_than_there_is_room_it_has_senders_come_again(tmp_path: Path) -> None:
    todo = batches(90)
    with place() as destination:
        site = Site(tmp_path, destination.address)
        spans = {
            "endpoint": destination.address,
            "max_request_size": "256KiB",
            "sending_queue": {"size": "1MiB"},
        }
        site.config["destinations"] = {"spans": spans}
        destination.down()
        with site.running() as processor, load(site.grpc, todo, every_s=0.03) as senders:
            wait_until(lambda: senders.postponed > 0)
            assert processor.fetch("/readyz")[0] == 503
            assert not senders.is_done
            destination.up()
            senders.join()
            processor.wait_until_empty()
            assert processor.end().code == 0

        check_each_came_once(ids_of(todo), *destination.all)
        check_each_has_its_lane(ids_of(todo), *destination.all)


def test_the_place_of_lanes_down_for_long_keeps_no_span_out(tmp_path: Path) -> None:
    todo = batches(90)
    with sink() as destination, place() as lanes:
        lanes.down()
        site = Site(tmp_path, destination.address)
        derived = {
            "endpoint": lanes.address,
            "max_request_size": "64KiB",
            "sending_queue": {"size": "64KiB"},
            "drain": "1s",
        }
        spans = {"endpoint": destination.address}
        site.config["destinations"] = {"spans": spans, "derived": derived}
        with site.running() as processor, load(site.grpc, todo, every_s=0.03) as senders:
            senders.join()
            told = processor.wait_until(lambda told: told.books.sent == len(ids_of(todo)))
            assert processor.is_ready
            assert processor.end().code == 0

        assert not senders.postponed
        assert told.books.dropped["no room in its queue"]
        check_each_came_once(ids_of(todo), destination)


def test_a_slow_one_gets_everything_once(tmp_path: Path) -> None:
    todo = batches(90)
    with place() as destination:
        destination.now.delay_s = SLOW_S
        site = Site(tmp_path, destination.address)
        with site.running() as processor, load(site.grpc, todo, every_s=0.05) as senders:
            senders.join()
            processor.wait_until_empty()
            assert processor.end().code == 0

        check_each_came_once(ids_of(todo), *destination.all)
        check_each_has_its_lane(ids_of(todo), *destination.all)


def test_one_that_comes_and_goes_gets_everything(tmp_path: Path) -> None:
    todo = batches(120)
    with place() as destination:
        site = Site(tmp_path, destination.address)
        with site.running() as processor, load(site.grpc, todo, every_s=0.1) as senders:
            for _ in range(FLAPS):
                before = destination.spans
                wait_until(lambda: destination.spans > before)  # noqa: B023
                destination.down()
                pause(0.5)
                destination.up()
            senders.join()
            processor.wait_until_empty()
            assert processor.end().code == 0

        # An answer that it took to its end with it leaves open whether the spans were taken.
        check_all_came(ids_of(todo), *destination.all)
        check_each_has_its_lane(ids_of(todo), *destination.all, at_most=1 + FLAPS)


def in_turn(tmp_path: Path, endpoint: str, destination: Arrivals, codes: int) -> tuple[str, int]:
    """A trace for each code, and two more: the books at the end, and how many spans were sent."""
    traces = whole_traces(codes + 2)
    site = Site(tmp_path, endpoint)
    site.config["window"] = {"idle": "50ms", "grace": "50ms"}
    spans = site.config["destinations"]["spans"]  # type: ignore[index]
    spans["retry"] = {"initial_interval": "50ms"}
    with site.running() as processor:
        for number, one in enumerate(traces, start=1):
            with load(site.grpc, [one], senders=1) as senders:
                senders.join()
            destination.wait_for_requests(number)
            processor.wait_until_empty()
        ended = processor.end()
    assert ended.code == 0
    return ended.books, len(ids_of(traces))


def test_what_it_may_take_later_is_sent_again(tmp_path: Path) -> None:
    answers: Sequence[Answer] = [
        *map(failing, RETRYABLE),
        asking_to_wait(_Code.RESOURCE_EXHAUSTED, 0.1),
        failing(_Code.RESOURCE_EXHAUSTED),  # no hint: too large, and its halves are not
    ]
    with sink(*answers) as destination:
        books, spans = in_turn(tmp_path, destination.address, destination, len(answers))
        assert "dropped" not in books
        assert len(arrived([destination])) == spans == arrived([destination]).total()


def test_what_it_may_take_later_over_http_is_sent_again(tmp_path: Path) -> None:
    answers = [*map(Reply, RETRYABLE_HTTP), Reply(429, headers={"retry-after": "1"}), Reply(413)]
    with http_sink(*answers) as destination:
        books, spans = in_turn(tmp_path, destination.url, destination, len(answers))
        assert "dropped" not in books
        assert len(arrived([destination])) == spans == arrived([destination]).total()


def test_what_it_never_takes_is_dropped_and_counted(tmp_path: Path) -> None:
    with sink(*map(failing, PERMANENT)) as destination:
        books, _ = in_turn(tmp_path, destination.address, destination, len(PERMANENT))
        check_refused(books, destination, len(PERMANENT))


def test_what_it_never_takes_over_http_is_dropped_and_counted(tmp_path: Path) -> None:
    with http_sink(*map(Reply, PERMANENT_HTTP)) as destination:
        books, _ = in_turn(tmp_path, destination.url, destination, len(PERMANENT_HTTP))
        check_refused(books, destination, len(PERMANENT_HTTP))


def check_refused(books: str, destination: Arrivals, codes: int) -> None:
    """As many as were in the first requests, and the two that came after have arrived."""
    dropped = sum(map(spans_in, destination.requests[:codes]))
    assert f", {dropped} dropped (refused by the destination)" in books
    assert len(destination.requests) == codes + 2
    check_each_has_its_lane(arrived([destination]), destination)


def spans_in(request: bytes) -> int:
    """With those that were made by the processor."""
    other = Arrivals()
    other.take(request)
    return len(other.spans)
