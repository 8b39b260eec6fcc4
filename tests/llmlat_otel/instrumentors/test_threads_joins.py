"""Which work in other threads an operation has waited for, in every way there is."""

import asyncio
import concurrent.futures
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import llmlat_otel
from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors import threads
from llmlat_otel.testing import recorded
from tests.llmlat_otel.places import PLACES
from tests.llmlat_otel.waiting import joined, joins, parents, pass_time


@pytest.fixture(autouse=True)
def instrumentor():
    before = faults()
    made = Instrumentor(threads.TARGETS)
    made.instrument()
    yield made
    made.uninstrument()
    assert faults() == before


@pytest.fixture
def record():
    with recorded() as what:
        yield what


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as made:
        yield made


def tool(name, until=None):
    if until is not None:
        until.wait()
    with llmlat_otel.tool(name):
        pass_time()


# ── A thread that waits ──────────────────────────────────────────────────────────────────────────


def ask(pool):
    for future in [pool.submit(tool, "one"), pool.submit(tool, "two")]:
        future.result()


def ask_for_exceptions(pool):
    for future in [pool.submit(tool, "one"), pool.submit(tool, "two")]:
        future.exception()


def map_over(pool):
    list(pool.map(tool, ["one", "two"]))


def wait(pool):
    concurrent.futures.wait([pool.submit(tool, "one"), pool.submit(tool, "two")])


def as_completed(pool):
    for _ in concurrent.futures.as_completed([pool.submit(tool, "one"), pool.submit(tool, "two")]):
        pass


def leave(_):
    with ThreadPoolExecutor(2) as own:
        own.submit(tool, "one")
        own.submit(tool, "two")


def shut_down(_):
    own = ThreadPoolExecutor(1)
    own.submit(tool, "one")
    own.submit(tool, "two")
    own.shutdown()


def join(_):
    started = [threading.Thread(target=tool, args=(name,)) for name in ("one", "two")]
    for each in started:
        each.start()
    for each in started:
        each.join()


def join_timer(_):
    for name in ("one", "two"):
        timer = threading.Timer(0, tool, (name,))
        timer.start()
        timer.join()


def ask_in_the_pool(pool):
    """The work has waited for other work."""
    pool.submit(ask, pool).result()


def join_what_asks(pool):
    thread = threading.Thread(target=ask, args=(pool,))
    thread.start()
    thread.join()


def run_in_another_loop(pool):
    async def main():
        await asyncio.gather(asyncio.to_thread(tool, "one"), asyncio.to_thread(tool, "two"))

    pool.submit(asyncio.run, main()).result()


def run_in_this_thread(_):
    async def main():
        await asyncio.gather(asyncio.to_thread(tool, "one"), asyncio.to_thread(tool, "two"))

    asyncio.run(main())


WAITS = {
    each.__name__: each
    for each in (
        ask,
        ask_for_exceptions,
        map_over,
        wait,
        as_completed,
        leave,
        shut_down,
        join,
        join_timer,
        ask_in_the_pool,
        join_what_asks,
        run_in_another_loop,
        run_in_this_thread,
    )
}


@pytest.mark.parametrize("way", WAITS)
def test_a_thread_says_which_work_it_has_waited_for(record, pool, way):
    may_go_on = threading.Event()
    with llmlat_otel.agent("adviser"):
        forgotten = pool.submit(tool, "forgotten", may_go_on)
        WAITS[way](pool)
    may_go_on.set()
    concurrent.futures.wait([forgotten])
    assert joined(record) == ["one", "two"]
    assert set(parents(record).values()) == {None, "adviser"}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_whatever_place_the_work_is_done_in(record, place):
    with llmlat_otel.agent("adviser"):
        place(lambda: tool("one"))
    assert joins(record) == [["one"]]


def test_what_is_asked_for_late_was_waited_for_and_what_is_not_asked_for_was_not(record, pool):
    with llmlat_otel.agent("adviser"):
        asked, forgotten = pool.submit(tool, "asked"), pool.submit(tool, "forgotten")
        while not (asked.done() and forgotten.done()):
            pass
        asked.result()
    assert joins(record) == [["asked"]]


def test_what_is_not_there_in_time_was_not_waited_for(record, pool):
    may_end = threading.Event()

    def work():
        tool("one")
        may_end.wait()

    thread = threading.Thread(target=work)
    with llmlat_otel.agent("adviser"):
        thread.start()
        future = pool.submit(work)
        with pytest.raises(concurrent.futures.TimeoutError):
            future.result(timeout=0)
        concurrent.futures.wait([future], timeout=0)
        thread.join(timeout=0)
    may_end.set()
    thread.join()
    future.result()
    assert joins(record) == []


def test_an_inner_operation_that_asks_does_so_for_those_around_it(record, pool):
    with llmlat_otel.agent("adviser"):
        future = pool.submit(tool, "one")
        with llmlat_otel.tool("inner"):
            future.result()
    assert (joins(record), joins(record, "execute_tool inner")) == ([["one"]], [])


def test_an_operation_in_another_thread_does_not_wait_for_those_around_it(record, pool):
    """The inner one has waited; whoever is around it has waited for nobody."""

    def ask_within(future):
        with llmlat_otel.tool("inner"):
            future.result()

    with llmlat_otel.agent("adviser"):
        done = pool.submit(ask_within, pool.submit(tool, "one"))
        while not done.done():
            pass
    assert joins(record) == []


def test_an_operation_may_be_in_another_trace_than_the_work_it_waits_for(record, pool):
    future = pool.submit(tool, "one")
    with llmlat_otel.agent("adviser"):
        future.result()
    assert joins(record) == []


def test_one_wait_for_several_is_one_event(record, pool):
    with llmlat_otel.agent("adviser"):
        wait(pool)
        leave(pool)
    assert sorted(joins(record)[0]) == ["one", "two"]
    assert joined(record) == ["one", "one", "two", "two"]


# ── A task that waits ────────────────────────────────────────────────────────────────────────────


async def run_in_executor(pool):
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(pool, tool, "one")
    await loop.run_in_executor(None, tool, "two")


async def to_thread(_):
    await asyncio.to_thread(tool, "one")
    await asyncio.to_thread(tool, "two")


async def gather_to_thread(_):
    await asyncio.gather(asyncio.to_thread(tool, "one"), asyncio.to_thread(tool, "two"))


async def gather_run_in_executor(pool):
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(pool, tool, name) for name in ("one", "two")))


async def wrap_future(pool):
    for name in ("one", "two"):
        await asyncio.wrap_future(pool.submit(tool, name))


async def block(pool):
    ask(pool)


async def block_in_thread(pool):
    await asyncio.to_thread(ask, pool)


async def block_and_leave(pool):
    leave(pool)


TASK_WAITS = {
    each.__name__: each
    for each in (
        run_in_executor,
        to_thread,
        gather_to_thread,
        gather_run_in_executor,
        wrap_future,
        block,
        block_in_thread,
        block_and_leave,
    )
}


@pytest.mark.parametrize("way", TASK_WAITS)
def test_a_task_says_which_work_it_has_waited_for(record, pool, way):
    may_go_on = threading.Event()

    async def main():
        loop = asyncio.get_running_loop()
        with llmlat_otel.agent("adviser"):
            forgotten = loop.run_in_executor(pool, tool, "forgotten", may_go_on)
            await TASK_WAITS[way](pool)
        may_go_on.set()
        await forgotten

    asyncio.run(main())
    assert joined(record) == ["one", "two"]


@pytest.mark.parametrize("way", TASK_WAITS)
def test_it_makes_no_difference_how_fast_the_work_is(record, pool, way, monkeypatch):
    """Here it is done before anybody can ask for it."""
    submit = ThreadPoolExecutor.submit

    def submit_and_wait(self, function, /, *args):
        future = submit(self, function, *args)
        while not future.done():
            pass
        return future

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_and_wait)

    async def main():
        with llmlat_otel.agent("adviser"):
            await TASK_WAITS[way](pool)

    asyncio.run(main())
    assert joined(record) == ["one", "two"]


def test_a_thread_waits_for_a_task_of_another_threads_loop(record):
    async def work():
        await asyncio.sleep(0)
        tool("one")

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with llmlat_otel.agent("adviser"):
        asyncio.run_coroutine_threadsafe(work(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    assert joins(record) == [["one"]]


def test_a_loop_that_is_closed_is_told_nothing(record):
    may_go_on = threading.Event()
    started = threading.Thread(target=tool, args=("one", may_go_on))
    kept = []

    async def main():
        block = llmlat_otel.agent("adviser")
        kept.append(block)
        block.__enter__()
        started.start()

    asyncio.run(main())
    may_go_on.set()
    started.join()
    kept[0].__exit__(None, None, None)
    assert joins(record) == []
