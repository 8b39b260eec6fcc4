"""Other threads that a program may have its work done in."""

import asyncio
import functools
import threading
from concurrent.futures import ThreadPoolExecutor


def submit(work):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work)


def map_over(work):
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(lambda _: work(), [1]))


def submit_partial(work):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(functools.partial(work))


def submit_in_submit(work):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(submit, work)


def run_in_default_executor(work):
    async def main():
        await asyncio.get_running_loop().run_in_executor(None, work)

    asyncio.run(main())


def run_in_own_executor(work):
    async def main():
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, work)

    asyncio.run(main())


def to_thread(work):
    async def main():
        await asyncio.to_thread(work)

    asyncio.run(main())


def run(thread):
    thread.start()
    thread.join()


def thread(work):
    run(threading.Thread(target=work))


def daemon(work):
    run(threading.Thread(target=work, daemon=True))


def timer(work):
    run(threading.Timer(0, work))


def thread_in_thread(work):
    run(threading.Thread(target=thread, args=(work,)))


def loop_in_thread(work):
    async def main():
        work()

    run(threading.Thread(target=asyncio.run, args=(main(),)))


class OwnThread(threading.Thread):
    def __init__(self, work):
        super().__init__()
        self.work = work

    def run(self):
        self.work()


def own_thread(work):
    run(OwnThread(work))


PLACES = {
    place.__name__: place
    for place in (
        submit,
        map_over,
        submit_partial,
        submit_in_submit,
        run_in_default_executor,
        run_in_own_executor,
        to_thread,
        thread,
        daemon,
        timer,
        thread_in_thread,
        loop_in_thread,
        own_thread,
    )
}
"""Each runs a function elsewhere, and waits for it."""
