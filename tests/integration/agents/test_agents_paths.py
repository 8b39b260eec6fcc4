"""From the manual API to the critical path: what an agent waited for, in tasks and in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import llmlat_otel
from llmlat_otel.core.guard import faults
from llmlat_otel.testing import MS, ManualClock, Recorded, recorded
from llmlat_processor.model import ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.wire import decode
from tests.llmlat_otel.waiting import TASK_GROUP


class Timetable:
    """Lets time pass, from one instant at which somebody does something to the next.

    Args:
        clock: Is moved.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._origin_ns = clock.monotonic_ns
        self._waiting: dict[int, asyncio.Event] = {}

    async def until(self, at_ms: int) -> None:
        """Wait for an instant."""
        await self._waiting.setdefault(at_ms, asyncio.Event()).wait()

    async def run(self, work: Awaitable[Any]) -> None:
        """Let time pass until the work is done."""
        task = asyncio.ensure_future(work)
        while not task.done():
            await _turns()
            if self._waiting:
                at_ms = min(self._waiting)
                self.move(at_ms)
                self._waiting.pop(at_ms).set()
        await task

    def move(self, at_ms: int) -> None:
        """It is a later instant now."""
        self._clock.advance(self._origin_ns + at_ms * MS - self._clock.monotonic_ns)


async def _turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def times(clock: ManualClock) -> Timetable:
    return Timetable(clock)


@pytest.fixture
def record(clock: ManualClock) -> Iterator[Recorded]:
    before = faults()
    llmlat_otel.instrument()
    with recorded(clock=clock) as what:
        yield what
    llmlat_otel.uninstrument()
    assert faults() == before


def explained(record: Recorded) -> ExplainedTrace:
    """What the processor makes of it."""
    return process(decode(encode_spans(record.spans).SerializeToString()).spans)


def path(found: ExplainedTrace) -> list[str]:
    """The sections of the end-to-end path: whose, called what, from when to when."""
    (root,) = found.paths.roots
    lines, at_ns = [], 0
    for each in root.e2e.sections:
        of, end_ns = each.span.name.split()[-1], at_ns + each.duration_ns
        lines.append(f"{of} {each.label.value} {at_ns // MS}..{end_ns // MS}")
        at_ns = end_ns
    return lines


def edges(found: ExplainedTrace) -> set[str]:
    """How the path went from one operation to the one before it, and how that is known."""
    (root,) = found.paths.roots
    names = {span.span_id: span.name.split()[-1] for span in found.trace.operations}
    return {f"{names[e.before]} > {names[e.after]}: {e.evidence}" for e in root.e2e.edges}


def findings(found: ExplainedTrace) -> list[str]:
    names = {span.span_id: span.name.split()[-1] for span in found.trace.operations}
    return [f"{each.kind.value} of {names[each.of]}" for each in found.findings]


# ── Tasks ────────────────────────────────────────────────────────────────────────────────────────

Tool = Callable[[str, int], Awaitable[None]]


async def gather(tool: Tool) -> None:
    await asyncio.gather(tool("a", 10), tool("b", 30))


async def tasks_in_turn(tool: Tool) -> None:
    tasks = [asyncio.ensure_future(tool("a", 10)), asyncio.ensure_future(tool("b", 30))]
    for each in tasks:
        await each


TASKS = [gather, tasks_in_turn]

if TASK_GROUP is not None:

    async def nested_groups(tool: Tool) -> None:
        async with TASK_GROUP() as outer:
            outer.create_task(tool("a", 10))
            outer.create_task(inner_group(tool))

    async def inner_group(tool: Tool) -> None:
        async with TASK_GROUP() as inner:
            inner.create_task(tool("b", 30))

    TASKS.append(nested_groups)


#   adviser    ├────────────────────────┤
#     a        ├───────┤
#     b        ├────────────────┤          the agent waited for a and b
#     left     ├────────────┤              fire and forget
@pytest.mark.parametrize("way", TASKS)
def test_an_agent_waits_for_its_tasks_and_not_for_what_it_leaves_behind(
    record: Recorded, times: Timetable, way: Callable[[Tool], Awaitable[None]]
) -> None:
    @llmlat_otel.tool()
    async def left() -> None:
        await times.until(20)

    async def tool(name: str, end_ms: int) -> None:
        with llmlat_otel.tool(name):
            await times.until(end_ms)

    async def main() -> None:
        with llmlat_otel.agent("adviser"):
            forgotten = asyncio.ensure_future(left())
            await way(tool)
            await times.until(40)
        await forgotten

    asyncio.run(times.run(main()))
    found = explained(record)
    assert path(found) == ["b tool 0..30", "adviser unobserved 30..40"]
    assert edges(found) == {"b > adviser: explicit"}
    assert findings(found) == []


def test_an_agent_goes_on_with_the_first_that_is_done(record: Recorded, times: Timetable) -> None:
    @llmlat_otel.tool("a")
    async def short() -> None:
        await times.until(10)

    @llmlat_otel.tool("b")
    async def long() -> None:
        await times.until(30)

    async def main() -> None:
        with llmlat_otel.agent("adviser"):
            both = [asyncio.ensure_future(short()), asyncio.ensure_future(long())]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            await times.until(20)
        await both[1]

    asyncio.run(times.run(main()))
    found = explained(record)
    assert path(found) == ["a tool 0..10", "adviser unobserved 10..20"]
    assert edges(found) == {"a > adviser: explicit"}
    assert findings(found) == ["outlived_parent of b"]


# ── Threads ──────────────────────────────────────────────────────────────────────────────────────


def submit(tool: Callable[[str, int], None]) -> None:
    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(tool, "a", 10), pool.submit(tool, "b", 30)]:
            future.result()


def map_over(tool: Callable[[str, int], None]) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(tool, ["a", "b"], [10, 30]))


def start(tool: Callable[[str, int], None]) -> None:
    threads = [threading.Thread(target=tool, args=each) for each in (("a", 10), ("b", 30))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def run_in_executor(tool: Callable[[str, int], None]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        each = (loop.run_in_executor(None, tool, *args) for args in (("a", 10), ("b", 30)))
        await asyncio.gather(*each)

    asyncio.run(main())


def to_thread(tool: Callable[[str, int], None]) -> None:
    async def main() -> None:
        await asyncio.gather(asyncio.to_thread(tool, "a", 10), asyncio.to_thread(tool, "b", 30))

    asyncio.run(main())


@pytest.mark.parametrize("way", [submit, map_over, start, run_in_executor, to_thread])
def test_pt_02_an_agent_waits_for_its_threads(
    record: Recorded, times: Timetable, way: Callable[[Callable[[str, int], None]], None]
) -> None:
    both_run, is_over = threading.Barrier(2), threading.Event()

    def tool(name: str, end_ms: int) -> None:
        with llmlat_otel.tool(name):
            both_run.wait()
            if name == "b":
                is_over.wait()
            times.move(end_ms)
        is_over.set()

    with llmlat_otel.agent("adviser"):
        way(tool)
        times.move(40)
    found = explained(record)
    assert path(found) == ["b tool 0..30", "adviser unobserved 30..40"]
    assert edges(found) == {"b > adviser: explicit"}
    assert findings(found) == []


# ── What outlives its parent ─────────────────────────────────────────────────────────────────────


#   adviser    ├────┤
#     rows       ├───────┤       read by whoever called the agent
def test_a_generator_may_outlive_the_agent_that_made_it(
    record: Recorded, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    @llmlat_otel.tool()
    def rows() -> Iterator[int]:
        for number in range(3):
            clock.advance(5 * MS)
            yield number

    def answer() -> Iterator[int]:
        with llmlat_otel.agent("adviser"):
            clock.advance(10 * MS)
            made = rows()
            next(made)
            clock.advance(5 * MS)
            return made

    made = answer()
    assert trace.get_current_span() is trace.INVALID_SPAN
    for _ in made:
        assert trace.get_current_span() is trace.INVALID_SPAN
    found = explained(record)
    assert path(found) == ["adviser unobserved 0..20"]
    assert findings(found) == ["outlived_parent of rows"]
    assert not caplog.records


def test_an_asynchronous_generator_may_outlive_the_agent_that_made_it(
    record: Recorded, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    @llmlat_otel.tool()
    async def rows() -> AsyncIterator[int]:
        for number in range(3):
            clock.advance(5 * MS)
            await _turns()
            yield number

    async def answer() -> AsyncIterator[int]:
        with llmlat_otel.agent("adviser"):
            made = rows()
            await anext(made)
            clock.advance(5 * MS)
            return made

    async def main() -> None:
        made = await asyncio.ensure_future(answer())
        await asyncio.ensure_future(read(made))

    async def read(made: AsyncIterator[int]) -> None:
        async for _ in made:
            assert trace.get_current_span() is trace.INVALID_SPAN

    asyncio.run(main())
    found = explained(record)
    assert path(found) == ["adviser unobserved 0..10"]
    assert findings(found) == ["outlived_parent of rows"]
    assert not caplog.records
