"""kill -9: what was acknowledged is on disk, and the next run goes on with it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.faults.ledger import check_all_came, check_each_has_its_lane, repeats
from tests.faults.load import batches, ids_of, load
from tests.faults.processor_run import Site, is_alive, wait_until
from tests.llmlat_processor.sink import sink

pytestmark = pytest.mark.faults

KILLS = 3


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_under_load_again_and_again_nothing_that_was_acknowledged_is_lost(
    workers: int, tmp_path: Path
) -> None:
    todo = batches(120)
    replayed = 0
    with sink() as destination:
        site = Site(tmp_path, destination.address, workers=workers)
        with load(site.grpc, todo, every_s=0.08) as senders:
            for kill in range(1, KILLS + 1):
                with site.running() as processor:
                    wait_until(lambda: processor.is_ready)
                    replayed += processor.status().books.replayed
                    wanted = len(ids_of(todo)) * kill * 0.2
                    wait_until(lambda: len(senders.acknowledged) > wanted)  # noqa: B023
                    processor.kill_all()
                with site.running() as processor:
                    processor.kill_all()  # while it reads what was left
            with site.running() as processor:
                senders.join()
                replayed += processor.wait_until_empty().books.replayed
                ended = processor.end()

        assert ended.code == 0
        assert senders.postponed  # it was down meanwhile
        assert senders.acknowledged == ids_of(todo)
        spans = check_all_came(senders.acknowledged, destination)
        assert replayed > 0
        assert repeats(spans) <= replayed
        check_each_has_its_lane(senders.acknowledged, destination, at_most=2)
    print(f"replayed {replayed}, repeated at the destination {repeats(spans)} of {len(spans)}")


def test_what_some_workers_have_left_others_go_on_with(tmp_path: Path) -> None:
    todo = batches(120)
    with sink() as destination:
        site = Site(tmp_path, destination.address)
        replayed = 0
        with load(site.grpc, todo, every_s=0.06) as senders:
            for number, workers in enumerate((2, 1, 3), start=1):
                site.config["workers"] = workers
                with site.running() as processor:
                    wait_until(lambda: processor.is_ready)
                    replayed += processor.status().books.replayed
                    wanted = len(ids_of(todo)) * number * 0.2
                    wait_until(lambda: len(senders.acknowledged) > wanted)  # noqa: B023
                    processor.kill_all()
            with site.running() as processor:
                senders.join()
                replayed += processor.wait_until_empty().books.replayed
                assert processor.end().code == 0

        assert senders.acknowledged == ids_of(todo)
        assert replayed > 0
        assert repeats(check_all_came(ids_of(todo), destination)) <= replayed
        check_each_has_its_lane(ids_of(todo), destination, at_most=2)


def test_a_worker_that_is_killed_is_started_again_with_what_it_had(tmp_path: Path) -> None:
    todo = batches(160)
    with sink() as destination:
        site = Site(tmp_path, destination.address, workers=2)
        with site.running() as processor, load(site.grpc, todo, every_s=0.05) as senders:
            before = processor.workers()
            assert len(before) == 2
            wait_until(lambda: len(senders.acknowledged) > len(ids_of(todo)) // 4)
            os.kill(before[0], signal.SIGKILL)
            senders.join()
            told = processor.wait_until_empty()
            after = processor.workers()
            ended = processor.end()

        assert len(set(before) & set(after)) == 1
        assert len(after) == 2
        assert ended.code == 0
        spans = check_all_came(senders.acknowledged, destination)
        assert senders.acknowledged == ids_of(todo)
        assert repeats(spans) <= told.books.replayed
        assert told.books.replayed
        check_each_has_its_lane(senders.acknowledged, destination, at_most=2)


def test_workers_whose_parent_is_killed_end_by_themselves(tmp_path: Path) -> None:
    todo = batches(120)
    with sink() as destination:
        site = Site(tmp_path, destination.address, workers=2)
        with load(site.grpc, todo, every_s=0.05) as senders:
            with site.running() as processor:
                wait_until(lambda: len(senders.acknowledged) > len(ids_of(todo)) // 4)
                processor.kill()
                assert len(processor.orphans) == 2
                wait_until(lambda: not any(map(is_alive, processor.orphans)))
            with site.running() as processor:
                senders.join()
                told = processor.wait_until_empty(keeps_skeletons=True)
                assert processor.end().code == 0

        assert senders.acknowledged == ids_of(todo)
        spans = check_all_came(senders.acknowledged, destination)
        # What was on its way as the parent went was taken, and nobody could say so any more.
        on_its_way = 2 * max(len(one.ids) for one in todo)
        assert repeats(spans) <= told.books.replayed + on_its_way
        check_each_has_its_lane(senders.acknowledged, destination, at_most=2)
