"""Senders that are broken or mean: those beside them are not affected, and the books tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import grpc  # type: ignore[import-untyped]
import pytest

from tests.faults import attacks
from tests.faults.attacks import BODY, CROWD, HEAD, HTTP2, MIB, TIMES, Attack
from tests.faults.destinations import Timed, timed
from tests.faults.ledger import arrived, check_each_came_once, check_each_has_its_lane
from tests.faults.load import Batch, batches, ids_of, load, whole_traces
from tests.faults.processor_run import Processor, Site
from tests.llmlat_processor.receiving import idle_connections, many_files

pytestmark = pytest.mark.faults

ON_TIME_S: Final = 5.0
PEAK_BYTES: Final = 640 * MIB
"""Four bodies of the largest size at once, each of them twice, beside what is always there."""


class Beside(NamedTuple):
    """What is attacked while good clients send, over gRPC and over HTTP; and what comes beside."""

    site: Site
    processor: Processor
    destination: Timed
    more: list[Batch]


@contextmanager
def beside_good_clients(folder: Path) -> Iterator[Beside]:
    """Their spans are all acknowledged at the first try, and come once and in time."""
    by_grpc, by_http = batches(24, seed=1), batches(24, seed=2)
    more: list[Batch] = []
    with many_files(), timed() as destination:
        site = Site(folder, destination.address)
        with site.running() as processor:
            with (
                load(site.grpc, by_grpc, senders=1, every_s=0.05) as one,
                load(f"http://{site.http}", by_http, senders=1, every_s=0.05) as other,
            ):
                yield Beside(site, processor, destination, more)
                one.join()
                other.join()
            processor.wait_until_empty()
            assert processor.peak_bytes < PEAK_BYTES, processor.peak_bytes
            assert processor.end().code == 0

        assert not one.postponed + other.postponed, (one.words, other.words)
        check_each_came_once(ids_of([*by_grpc, *by_http, *more]), destination)
        check_each_has_its_lane(ids_of([*by_grpc, *by_http, *more]), destination)
        delays_s = destination.delays_s({**one.last_s, **other.last_s})
        assert delays_s[-1] < ON_TIME_S
        print(f"longest delay {delays_s[-1]:.2f} s")


class Row(NamedTuple):
    """An attack, and what the books tell of it."""

    attack: Attack
    other: Mapping[str, int]
    refused: int = 0


ROWS: Final = (
    Row(attacks.zip_bombs_over_grpc, {"unfinished": TIMES}),
    Row(attacks.zip_bombs_over_http, {"too_large": TIMES}),
    Row(attacks.many_empty_spans, {"undecodable": 2}),
    Row(attacks.too_large, {"unfinished": 1, "too_large": 1}),
    Row(attacks.garbage, {"undecodable": 6}),
    Row(attacks.invalid_text, {}, refused=TIMES),
    Row(attacks.invalid_ids, {}, refused=3),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.attack.__name__)
def test_what_is_no_good_is_refused_and_counted(row: Row, tmp_path: Path) -> None:
    with beside_good_clients(tmp_path) as beside:
        row.attack(beside.site)
        # gRPC answers before our side of it has been told that there was a call.
        expected = sum(row.other.values())
        told = beside.processor.wait_until(lambda told: sum(told.books.other.values()) >= expected)
        books = told.books
        assert books.other == row.other
        assert books.refused == row.refused


SLOW: Final = {
    "heads of HTTP": lambda site: attacks.half_said(site.http, HEAD),
    "bodies of HTTP": lambda site: attacks.half_said(site.http, BODY),
    "beginnings of HTTP/2": lambda site: attacks.half_said(site.grpc, HTTP2),
    "calls of gRPC": lambda site: attacks.unfinished_calls(site.grpc),
    "connections of gRPC": lambda site: idle_connections(site.grpc, CROWD),
    "connections of HTTP": lambda site: idle_connections(site.http, CROWD),
}


@pytest.mark.parametrize("what", SLOW)
def test_who_does_not_come_to_an_end_keeps_nobody_out(what: str, tmp_path: Path) -> None:
    with beside_good_clients(tmp_path) as beside:
        held: AbstractContextManager[object] = SLOW[what](beside.site)
        with held:
            beside.more.extend(whole_traces(2, seed=3))
            for address in (beside.site.grpc, f"http://{beside.site.http}"):
                with load(address, beside.more, senders=1) as news:
                    news.join()
                    assert not news.postponed
            assert beside.processor.is_ready


def test_a_batch_that_comes_again_and_again_is_sent_once(tmp_path: Path) -> None:
    (one,) = whole_traces(1)
    with timed() as destination:
        site = Site(tmp_path, destination.address)
        with site.running() as processor:
            with ThreadPoolExecutor(TIMES) as threads:
                codes = threads.map(lambda _: attacks.asked(site.grpc, one.request), range(TIMES))
                assert {*codes} == {grpc.StatusCode.OK}
            processor.wait_until_empty()
            assert attacks.asked(site.grpc, one.request) is grpc.StatusCode.OK
            told = processor.wait_until(lambda told: told.books.repeated == TIMES * len(one.ids))
            assert processor.end().code == 0
    assert told.books.received == (1 + TIMES) * len(one.ids)
    assert arrived([destination]) == dict.fromkeys(one.ids, 1)
