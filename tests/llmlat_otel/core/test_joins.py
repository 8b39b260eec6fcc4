"""Which children an operation has waited for, in one loop: every way of waiting, and none."""

import asyncio
from typing import Any

import pytest

import llmlat_otel
from llmlat_otel.testing import MS
from llmlat_semconv.events import LLMLAT_JOIN
from tests.llmlat_otel.waiting import (
    TASK_GROUP,
    TOGETHER,
    WAYS,
    joined,
    joins,
    parent_of,
    parents,
    pass_time,
    task,
    tool,
    turns,
    working,
)

AGENT = "invoke_agent adviser"


# ── What was waited for ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
def test_the_parent_says_which_children_it_has_waited_for(record, way):
    async def main():
        with llmlat_otel.agent("adviser"):
            forgotten = task(tool("forgotten", 1))
            await WAYS[way](tool("one"), tool("two", 3))
        await forgotten

    asyncio.run(main())
    assert joined(record) == ["one", "two"]
    assert parents(record) == dict.fromkeys(("one", "two", "forgotten"), "adviser") | {
        "adviser": None
    }


@pytest.mark.parametrize("way", TOGETHER)
def test_one_wait_is_one_event(record, way):
    async def main():
        with llmlat_otel.agent("adviser"):
            await TOGETHER[way](tool("one"), tool("two", 3), tool("three"))
            await TOGETHER[way](tool("four"))

    asyncio.run(main())
    assert [sorted(event) for event in joins(record)] == [["one", "three", "two"], ["four"]]


def test_decorated_coroutines_are_waited_for(record):
    @llmlat_otel.agent("adviser")
    async def answer():
        await asyncio.gather(working(), working(1))
        await working()

    asyncio.run(answer())
    assert joins(record) == [["working", "working"]], "the third ran in the agent's own task"


def test_pt_01_tools_under_gather_are_all_there_and_all_children_of_the_agent(record):
    async def main():
        for _ in range(200):
            with llmlat_otel.agent("adviser"):
                await asyncio.gather(*(working(number) for number in range(5)))

    asyncio.run(main())
    spans = record.tree()
    agents = [span["id"] for span in spans if span["parent"] is None]
    tools = [span["parent"] for span in spans if span["name"] == "execute_tool working"]
    assert (len(agents), sorted(tools)) == (200, sorted(agents * 5))


def test_a_model_call_in_a_task_is_waited_for(record, library):
    async def call():
        async def send():
            await turns(2)

        await library.create(send, model="m")

    async def main():
        with llmlat_otel.agent("adviser"):
            left = task(call())
            await asyncio.gather(call(), call())
        await left

    asyncio.run(main())
    assert joins(record) == [["m", "m"]]


def test_the_event_is_where_the_last_of_them_ended(record, clock):
    async def timed(name, duration_ms):
        with llmlat_otel.tool(name):
            await turns(duration_ms)
            clock.advance(duration_ms * MS)
        clock.advance(100 * MS)

    async def main():
        with llmlat_otel.agent("adviser"):
            await asyncio.gather(timed("one", 1), timed("two", 2))

    asyncio.run(main())
    (event,) = parent_of(record, AGENT)["events"]
    assert event[:2] == (LLMLAT_JOIN, parent_of(record, "execute_tool two")["end_ns"])


def test_the_children_of_an_inner_operation_are_its_own(record):
    async def main():
        with llmlat_otel.agent("adviser"):
            with llmlat_otel.tool("inner"):
                await asyncio.gather(tool("one"))
            await asyncio.gather(tool("two"))

    asyncio.run(main())
    assert (joins(record), joins(record, "execute_tool inner")) == ([["two"]], [["one"]])


def test_an_operation_around_a_loop_waits_for_what_runs_in_it(record):
    async def main():
        await asyncio.gather(tool("one"), tool("two"))

    with llmlat_otel.agent("adviser"):
        asyncio.run(main())
    assert joins(record) == [["one", "two"]]


def test_a_child_that_fails_was_waited_for_and_those_it_leaves_behind_were_not(record):
    async def fail():
        with llmlat_otel.tool("failing"):
            await turns(1)
            raise LookupError

    async def main():
        with llmlat_otel.agent("adviser"):
            left = task(tool("left", 5))
            with pytest.raises(LookupError):
                await asyncio.gather(fail(), left)
            await turns(10)

    asyncio.run(main())
    assert joins(record) == [["failing"]]


def test_of_several_the_first_was_waited_for(record):
    async def longer(name, count):
        with llmlat_otel.tool(name):
            await turns(count)
        await turns(2)

    async def main():
        with llmlat_otel.agent("adviser"):
            tasks = [task(longer("first", 2)), task(longer("second", 4)), task(longer("third", 9))]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await turns(20)

    asyncio.run(main())
    assert joins(record) == [["first"]]


def test_what_had_ended_before_the_wait_began_was_waited_for_with_the_task_that_goes_on(record):
    async def branch():
        await tool("early", 0)
        await turns(8)
        await tool("late", 0)

    async def main():
        with llmlat_otel.agent("adviser"):
            branches = [task(branch())]
            await turns(4)
            await asyncio.gather(*branches)

    asyncio.run(main())
    assert joins(record) == [["early", "late"]]


def test_a_task_that_goes_on_after_its_last_child_may_be_awaited_later(record):
    async def branch():
        await tool("early", 0)
        await turns(8)

    async def main():
        with llmlat_otel.agent("adviser"):
            branches = [task(branch()), task(branch())]
            await turns(4)
            await branches[0]
            forgotten = task(branch())
            await turns(20)
        await forgotten

    asyncio.run(main())
    assert joins(record) == [["early"]]


def test_a_task_that_a_tool_returns_is_waited_for(record):
    @llmlat_otel.tool("quote")
    def start():
        return task(work())

    async def work():
        await turns(3)
        pass_time()

    async def main():
        with llmlat_otel.agent("adviser"):
            await start()
            await asyncio.gather(start(), start())
            start()
            await turns(5)

    asyncio.run(main())
    assert joins(record) == [["quote"], ["quote", "quote"]]


if TASK_GROUP is not None:

    def test_a_task_group_that_has_been_left_was_waited_for_whenever_its_tasks_ended(record):
        async def main():
            with llmlat_otel.agent("adviser"):
                async with TASK_GROUP() as group:
                    group.create_task(tool("one"))
                    await turns(9)

        asyncio.run(main())
        assert joins(record) == [["one"]]

    def test_a_task_group_that_another_task_has_left_was_not_waited_for(record):
        async def branch():
            async with TASK_GROUP() as group:
                group.create_task(tool("one"))
                await turns(9)

        async def main():
            with llmlat_otel.agent("adviser"):
                forgotten = task(branch())
                await turns(20)
                assert forgotten.done()

        asyncio.run(main())
        assert joins(record) == []

    def test_a_task_group_around_an_operation_is_not_waited_for_by_it(record):
        async def main():
            async with TASK_GROUP() as group:
                with llmlat_otel.agent("adviser"):
                    group.create_task(tool("one"))
                    await turns(9)

        asyncio.run(main())
        assert joins(record) == []


# ── What was not ─────────────────────────────────────────────────────────────────────────────────


def test_what_runs_in_the_parents_own_task_needs_no_event(record):
    async def main():
        with llmlat_otel.agent("adviser"):
            await tool("one")
            await working()

    asyncio.run(main())
    assert joins(record) == []


def test_what_nobody_waits_for_is_in_no_event_though_it_ends_first(record):
    async def main():
        with llmlat_otel.agent("adviser"):
            forgotten = [task(tool("one")), task(working())]
            await asyncio.gather(tool("two", 9))
            assert all(each.done() for each in forgotten)

    asyncio.run(main())
    assert joins(record) == [["two"]]


def test_a_callback_that_leads_to_another_task_is_not_a_wait(record):
    async def main():
        with llmlat_otel.agent("adviser"):
            other: Any = task(turns(3))
            forgotten = task(tool("one"))
            forgotten.add_done_callback(lambda _: other.done())
            forgotten.add_done_callback(other.remove_done_callback)
            await other
        await forgotten

    asyncio.run(main())
    assert joins(record) == []


def test_what_was_over_before_it_was_awaited_has_held_nobody_up(record):
    async def main():
        with llmlat_otel.agent("adviser"):
            early = task(tool("one", 1))
            await turns(9)
            await early

    asyncio.run(main())
    assert joins(record) == [], "asyncio does not tell: the await returned at once"


def test_what_was_cancelled_was_not_waited_for(record):
    async def main():
        with llmlat_otel.agent("adviser"):
            slow = task(tool("slow", 1_000))
            await turns(2)
            slow.cancel()
            await asyncio.wait([slow])

    asyncio.run(main())
    assert joins(record) == []
    assert parent_of(record, "execute_tool slow")["error"]


def test_a_generator_waits_only_while_it_runs(record):
    @llmlat_otel.agent("adviser")
    async def answer():
        started = task(tool("one"))
        yield started
        await asyncio.gather(tool("two"))

    async def main():
        async for started in answer():
            await started

    asyncio.run(main())
    assert joins(record) == [["two"]], "the first was its caller's to await"


def test_an_operation_that_is_over_is_told_nothing(record, caplog):
    async def main():
        with llmlat_otel.agent("adviser"):
            started = task(tool("one"))
        await started

    asyncio.run(main())
    assert joins(record) == []
    assert not caplog.records
