"""What joins cost: so many events, nothing of a task kept, and nothing at all without a sample."""

import asyncio
import gc
import weakref
from typing import Any

from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import llmlat_otel
from llmlat_otel.core import joins as module
from llmlat_otel.testing import recorded
from tests.llmlat_otel.waiting import joined, joins, task, tool, turns, working


def test_an_event_has_so_many_ids(record):
    async def main():
        with llmlat_otel.agent("adviser"):
            await asyncio.gather(*(working() for _ in range(2 * module.IDS_MAX + 1)))

    asyncio.run(main())
    assert [len(event) for event in joins(record)] == [module.IDS_MAX, module.IDS_MAX, 1]


def test_an_operation_has_so_many_events_and_the_last_takes_the_rest(record, monkeypatch):
    monkeypatch.setattr(module, "EVENTS_MAX", 3)
    monkeypatch.setattr(module, "IDS_MAX", 4)

    async def main():
        with llmlat_otel.agent("adviser"):
            for number in range(9):
                await task(tool(str(number)))

    asyncio.run(main())
    assert joins(record) == [["0"], ["1"], ["2", "3", "4", "5"]]


def test_thousands_of_children_are_waited_for_without_trouble(record):
    async def main():
        with llmlat_otel.agent("adviser"):
            left = [task(working(1)) for _ in range(1_500)]
            await asyncio.gather(*(working() for _ in range(1_500)))
        await asyncio.gather(*left)

    asyncio.run(main())
    assert len(joined(record)) == 1_500


def test_nothing_of_a_task_is_kept(record):
    class Result:
        """Something large."""

    async def main():
        with llmlat_otel.agent("adviser"):
            kept = [weakref.ref(await task(tool("one", result=Result())))]
            forgotten = task(tool("two", result=Result()))
            await turns(9)
            kept += [weakref.ref(forgotten.result()), weakref.ref(forgotten)]
            del forgotten
            gc.collect()
            assert [each() for each in kept] == [None, None, None]

    asyncio.run(main())


def test_an_operation_that_is_over_keeps_no_task(record):
    kept: list[Any] = []

    async def main():
        block = llmlat_otel.agent("adviser")
        with block:
            started = task(tool("one"))
            kept.append(weakref.ref(started))
            await turns(9)
        del started
        gc.collect()
        assert kept[0]() is None
        return block

    asyncio.run(main())


def test_an_unsampled_operation_looks_at_nothing(monkeypatch, clock):
    def looked(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(module.Joins, "ended", looked)

    async def main():
        with llmlat_otel.agent("adviser"):
            await asyncio.gather(tool("one"))

    with recorded(clock=clock, sampler=ALWAYS_OFF) as what:
        asyncio.run(main())
    assert what.spans == ()
