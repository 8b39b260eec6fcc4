"""A disk that is full: senders are told to come again, and nothing is lost when there is room."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.destinations import place
from tests.faults.ledger import check_each_came_once, check_each_has_its_lane
from tests.faults.load import batches, ids_of, load
from tests.faults.processor_run import Site, wait_until

pytestmark = pytest.mark.faults

DISK = "12m"
UNWRITABLE = "the journal cannot be written"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of its own, which only root can have."""
    assert os.geteuid() == 0, "a small disk is a tmpfs that is mounted: run this as root"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(file: Path) -> None:
    """Take all the room that is left."""
    with file.open("ab", buffering=0) as stream:
        try:
            while stream.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017 - the disk is full now


@pytest.mark.parametrize("destination_is_there", [True, False])
def test_with_its_disk_full_it_asks_to_come_again_and_loses_nothing(
    *, destination_is_there: bool, tmp_path: Path
) -> None:
    todo = batches(120)
    with place() as destination, small_disk(tmp_path / "disk") as disk:
        site = Site(disk, destination.address)
        if not destination_is_there:
            destination.down()
        with site.running() as processor, load(site.grpc, todo, every_s=0.05) as senders:
            wait_until(lambda: len(senders.acknowledged) > len(ids_of(todo)) // 4)
            before = senders.postponed

            def is_told() -> bool:
                fill(disk / "ballast")  # what the journal has given back is taken as well
                told = processor.fetch("/readyz")
                return senders.postponed > before and told == (503, UNWRITABLE)

            wait_until(is_told)
            (disk / "ballast").unlink()
            destination.up()
            wait_until(lambda: processor.is_ready)
            senders.join()
            processor.wait_until_empty()
            ended = processor.end()

        assert ended.code == 0
        assert any("no space is left" in words for words in senders.words)
        assert senders.acknowledged == ids_of(todo)
        check_each_came_once(ids_of(todo), *destination.all)
        check_each_has_its_lane(ids_of(todo), *destination.all)


def test_killed_with_its_disk_full_it_has_all_that_it_had_accepted(tmp_path: Path) -> None:
    todo = batches(120)
    with place() as destination, small_disk(tmp_path / "disk") as disk:
        site = Site(disk, destination.address)
        destination.down()
        with load(site.grpc, todo, every_s=0.05) as senders:
            with site.running() as processor:
                wait_until(lambda: len(senders.acknowledged) > len(ids_of(todo)) // 4)
                fill(disk / "ballast")
                wait_until(lambda: not processor.is_ready)
                processor.kill()
            (disk / "ballast").unlink()
            destination.up()
            with site.running() as processor:
                senders.join()
                told = processor.wait_until_empty()
                assert processor.end().code == 0

        assert told.books.replayed
        assert senders.acknowledged == ids_of(todo)
        check_each_came_once(ids_of(todo), *destination.all)
        check_each_has_its_lane(ids_of(todo), *destination.all)
