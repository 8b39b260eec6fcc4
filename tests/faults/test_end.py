"""SIGTERM under load: all is sent, or it is kept for the next run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.destinations import place
from tests.faults.ledger import arrived, check_each_came_once, check_each_has_its_lane, repeats
from tests.faults.load import batches, ids_of, load
from tests.faults.processor_run import Site, wait_until
from tests.llmlat_processor.sink import sink

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("workers", [1, 2])
def test_at_its_end_under_load_it_sends_all_that_it_has_accepted(
    workers: int, tmp_path: Path
) -> None:
    todo = batches(120)
    with sink() as destination:
        site = Site(tmp_path, destination.address, workers=workers)
        with load(site.grpc, todo, every_s=0.05) as senders:
            with site.running() as processor:
                wait_until(lambda: len(senders.acknowledged) > len(ids_of(todo)) // 2)
                ended = processor.end()
            senders.stop()

        assert ended.code == 0
        assert "to be sent" not in ended.books
        assert " held" not in ended.books
        assert "dropped" not in ended.books
        assert 0 < len(senders.acknowledged) < len(ids_of(todo))
        spans = arrived([destination])
        assert senders.acknowledged <= spans.keys() <= ids_of(todo)
        assert not repeats(spans)


def test_at_its_end_with_the_destination_down_it_keeps_all_for_the_next_run(tmp_path: Path) -> None:
    todo = batches(60)
    with place() as destination:
        site = Site(tmp_path, destination.address)
        spans = {"endpoint": destination.address, "drain": "1s"}
        site.config["destinations"] = {"spans": spans}
        destination.down()
        with load(f"http://{site.http}", todo, every_s=0.05) as senders:
            with site.running() as processor:
                wait_until(lambda: len(senders.acknowledged) > len(ids_of(todo)) // 2)
                ended = processor.end()
            assert ended.code == 0
            assert "to be sent" in ended.books
            assert "dropped" not in ended.books
            destination.up()
            with site.running() as processor:
                senders.join()
                told = processor.wait_until_empty()
                assert processor.end().code == 0

        assert told.books.replayed
        assert senders.acknowledged == ids_of(todo)
        check_each_came_once(senders.acknowledged, *destination.all)
        check_each_has_its_lane(senders.acknowledged, *destination.all)


def test_at_its_end_with_only_the_place_of_lanes_down_no_span_comes_again(tmp_path: Path) -> None:
    todo = batches(60)
    with sink() as destination, place() as lanes:
        site = Site(tmp_path, destination.address)
        derived = {"endpoint": lanes.address, "drain": "1s"}
        site.config["destinations"] = {
            "spans": {"endpoint": destination.address},
            "derived": derived,
        }
        lanes.down()
        with site.running() as processor:
            with load(site.grpc, todo) as senders:
                senders.join()
            told = processor.wait_until(lambda told: told.books.sent == len(ids_of(todo)))
            ended = processor.end()
        lanes.up()
        with site.running() as processor:
            again = processor.wait_until_empty()
            assert processor.end().code == 0

        assert ended.code == 0
        assert f", {told.books.queued} dropped (shutdown)" in ended.books
        assert "to be sent" not in ended.books
        assert not again.books.received
        check_each_came_once(ids_of(todo), destination)
