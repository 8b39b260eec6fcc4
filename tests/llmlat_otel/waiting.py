"""Ways of waiting for tasks, and what a recording says of whom was waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import llmlat_otel
from llmlat_otel.core.runtime import runtime
from llmlat_otel.testing import MS, ManualClock, Recorded
from llmlat_semconv import attributes as names
from llmlat_semconv.events import LLMLAT_JOIN

Coroutines = tuple[Coroutine[Any, Any, Any], ...]
Way = Callable[..., Awaitable[Any]]


async def turns(count: int) -> None:
    """Let the loop go round a few times."""
    for _ in range(count):
        await asyncio.sleep(0)


def task(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(coroutine)


async def gather(*coroutines: Any) -> None:
    await asyncio.gather(*coroutines)


async def gather_tasks(*coroutines: Any) -> None:
    await asyncio.gather(*map(task, coroutines), return_exceptions=True)


async def gather_of_gathers(*coroutines: Any) -> None:
    await asyncio.gather(*(asyncio.gather(each) for each in coroutines))


async def wait(*coroutines: Any) -> None:
    await asyncio.wait([task(each) for each in coroutines])


async def wait_for_exception(*coroutines: Any) -> None:
    tasks = [task(each) for each in coroutines]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)


async def wait_for(*coroutines: Any) -> None:
    await asyncio.wait_for(asyncio.gather(*coroutines), 60)


async def shield(*coroutines: Any) -> None:
    await asyncio.shield(asyncio.gather(*coroutines))


async def nested(*coroutines: Any) -> None:
    await task(gather(task(wait(*coroutines))))


TOGETHER: dict[str, Way] = {
    way.__name__: way
    for way in (
        gather,
        gather_tasks,
        gather_of_gathers,
        wait,
        wait_for,
        shield,
        nested,
    )
}
"""Whoever waits in one of these ways waits for all, once."""

TASK_GROUP: Any = getattr(asyncio, "TaskGroup", None)
"""From Python 3.11 on."""

if TASK_GROUP is not None:

    async def group(*coroutines: Any) -> None:
        async with TASK_GROUP() as group:
            for each in coroutines:
                group.create_task(each)

    async def group_in_group(*coroutines: Any) -> None:
        async with TASK_GROUP() as outer:
            outer.create_task(group(*coroutines))

    TOGETHER |= {"group": group, "group_in_group": group_in_group}


async def one_after_the_other(*coroutines: Any) -> None:
    """Each is awaited while it runs: they are not started together."""
    for each in coroutines:
        await task(each)


async def wait_for_each(*coroutines: Any) -> None:
    for each in coroutines:
        await asyncio.wait_for(task(each), 60)


async def as_completed(*coroutines: Any) -> None:
    for each in asyncio.as_completed([one_more_turn(*coroutines)]):
        await each


async def one_more_turn(*coroutines: Any) -> None:
    await asyncio.gather(*coroutines)


WAYS: dict[str, Way] = {
    **TOGETHER,
    "one_after_the_other": one_after_the_other,
    "wait_for_each": wait_for_each,
    "as_completed": as_completed,
    "wait_for_exception": wait_for_exception,
}
"""Whoever waits in one of these ways waits for all, perhaps more than once."""


@llmlat_otel.tool()
async def working(count: int = 2) -> None:
    await turns(count)
    pass_time()


async def tool(name: str, count: int = 2, result: Any = None) -> Any:
    """A task of the application, with a tool in it."""
    with llmlat_otel.tool(name):
        await turns(count)
        pass_time()
    return result


def pass_time() -> None:
    """Let a millisecond pass, on a manual clock."""
    clock = runtime().clock
    if isinstance(clock, ManualClock):
        clock.advance(MS)


def joins(record: Recorded, of: str = "invoke_agent adviser") -> list[list[str]]:
    """For each event of an operation, the names of those that it has waited for."""
    spans = record.tree()
    by_id = {f"{span['id']:016x}": span["name"].split()[-1] for span in spans}
    return [
        [by_id[each] for each in said[names.LLMLAT_JOIN_SPAN_IDS]]
        for name, _, said in parent_of(record, of).get("events", ())
        if name == LLMLAT_JOIN
    ]


def joined(record: Recorded, of: str = "invoke_agent adviser") -> list[str]:
    """The names of all that an operation has waited for."""
    return sorted(name for names_ in joins(record, of) for name in names_)


def parent_of(record: Recorded, name: str) -> dict[str, Any]:
    (found,) = (span for span in record.tree() if span["name"] == name)
    return found


def parents(record: Recorded) -> dict[str, str | None]:
    """For each span, by name, the name of its parent."""
    spans = record.tree()
    by_id = {span["id"]: span["name"].split()[-1] for span in spans}
    return {span["name"].split()[-1]: by_id.get(span["parent"]) for span in spans}
