"""Reference programs: blocks and functions that the application times itself."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import copy
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tests.integration.seams import network as net
from tests.integration.seams.app import ASK, STREAM, App, UserError, programs

FLUSH_TIMEOUT_S: Final = 0.2


async def blocks(app: App) -> None:
    llmlat = app.llmlat
    reused = llmlat.tool("quote", call_id="c")
    async with app.within(llmlat.agent("adviser")) as span:
        span.set_attribute("k", 1)
        with reused, llmlat.phase("prepare"):
            app.say("quoted")
        with reused:
            llmlat.first_content()
            llmlat.first_content()
        with llmlat.retrieval("index"), contextlib.suppress(UserError):
            raise UserError
    llmlat.first_content()
    await app.trial(_failing, app, llmlat.agent("failing"))


async def _failing(app: App, manager: Any) -> None:
    async with app.within(manager):
        raise UserError


async def functions(app: App) -> None:
    @app.timed("tool")
    def add(one: int, two: int = 2) -> int:
        return one + two

    @app.timed("agent")
    async def answer(text: str) -> str:
        return text + str(add(1))

    @app.timed("retrieval", "index")
    def look_up() -> None:
        raise UserError

    app.say(add(1), add(one=3, two=4), add.__name__, asyncio.iscoroutinefunction(answer))
    app.say(await answer("a"))
    await app.trial(look_up)
    app.say(copy.copy(add)(1), copy.deepcopy(add)(1))


class _Tools:
    def __init__(self, llmlat: Any) -> None:
        self.llmlat = llmlat

    def tool(self) -> Any:
        return self.llmlat.tool("method")(self._run)()

    def _run(self) -> str:
        return self.__class__.__name__


async def generators(app: App) -> None:
    @app.timed("tool")
    def count() -> Iterator[int]:
        try:
            got = yield 1
            app.say("sent", got)
            yield 2
        except UserError:
            yield 3
        finally:
            app.say("left")

    app.say(_Tools(app.llmlat).tool())
    app.say(list(count()))
    for end in ("close", "send", "throw", "drop"):
        counting: Any = count()
        app.say(next(counting))
        if end == "send":
            app.say(counting.send("x"), *counting)
        elif end == "throw":
            app.say(counting.throw(UserError()))
            await app.trial(counting.throw, UserError())
        elif end == "close":
            app.say(counting.close(), *counting)
        del counting
        gc.collect()


async def async_generators(app: App) -> None:
    if not app.is_async:
        return

    @app.timed("agent")
    async def count() -> AsyncIterator[int]:
        try:
            got = yield 1
            app.say("sent", got)
            yield 2
        except UserError:
            yield 3
        finally:
            app.say("left")

    app.say([each async for each in count()])
    for end in ("close", "send", "throw"):
        counting: Any = count()
        app.say(await counting.__anext__())
        if end == "send":
            app.say(await counting.asend("x"), [each async for each in counting])
        elif end == "throw":
            app.say(await counting.athrow(UserError()))
            await app.trial(counting.athrow, UserError())
        else:
            app.say(await counting.aclose(), [each async for each in counting])


async def tasks(app: App) -> None:
    if not app.is_async:
        return

    @app.timed("tool")
    async def wait() -> str:
        await asyncio.sleep(0)
        return "waited"

    @app.timed("agent")
    def start() -> asyncio.Task[str]:
        return asyncio.create_task(wait())

    task = start()
    app.say(task, await task, await asyncio.gather(wait(), wait()))


async def handed_over(app: App) -> None:
    def work(number: int) -> int:
        with app.llmlat.tool("work"):
            return number + 1

    async def wait(number: int) -> int:
        async with app.within(app.llmlat.retrieval("index")):
            await asyncio.sleep(0)
            return number

    with app.llmlat.agent("adviser"):
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(work, number) for number in range(2)]
            app.say(len(concurrent.futures.wait(futures).done), *pool.map(work, (3, 4)))
            app.say(sorted(each.result() for each in concurrent.futures.as_completed(futures)))
        for daemon in (False, True):
            thread = threading.Thread(target=work, args=(5,), daemon=daemon)
            thread.start()
            thread.join()
        if app.is_async:
            app.say(await asyncio.gather(asyncio.to_thread(work, 6), wait(7)))
            tasks = [asyncio.create_task(wait(number)) for number in (8, 9)]
            app.say(len((await asyncio.wait(tasks))[0]))


async def vital_signs(app: App) -> None:
    with app.llmlat.tool("quote"):
        app.say(type(app.llmlat.health()))
    flush = app.llmlat.flush_async if app.is_async else app.llmlat.flush
    flushed = await app.settled(flush(FLUSH_TIMEOUT_S))
    app.say(type(flushed))


async def agent_with_calls(app: App) -> None:
    client = app.client(net.streamed(*net.CHUNKS), net.whole(net.COMPLETION))
    async with app.within(app.llmlat.agent("adviser")):
        stream = await app.settled(client.chat.completions.create(**STREAM))
        app.say(await app.step(stream))
        app.llmlat.first_content()
        with app.llmlat.tool("ask"):
            app.say(await app.settled(client.chat.completions.create(**ASK)))
        await app.read(stream)


PROGRAMS: Final = programs(vars())
