"""What need not be sent is dropped where the queue is full, and counted; all else has its place."""

from __future__ import annotations

from dataclasses import replace

from llmlat_processor.edges.exporter import NO_ROOM, SHUTDOWN, Exporter
from llmlat_processor.settings import Delivery, Destination
from tests.llmlat_processor.test_exporter import free_address, of


def test_only_what_may_be_dropped_is_dropped_for_want_of_room() -> None:
    first, second, third = of(1), of(2), of(3, 4)
    room = len(first.content) + len(second.content)
    exporter = Exporter(Destination(free_address(), delivery=replace(Delivery(), queue_bytes=room)))
    try:
        exporter.put(first, may_drop=True)
        exporter.put(second, may_drop=True)
        assert not exporter.has_room
        exporter.put(third, may_drop=True)
        assert exporter.counts.dropped == {NO_ROOM: 2}
        assert exporter.counts.queued == 2
        exporter.put(third)
        assert exporter.counts.queued == 4
    finally:
        exporter.stop(grace_s=0)
    assert exporter.counts.dropped == {NO_ROOM: 2, SHUTDOWN: 4}
    assert exporter.counts.accepted == 6
