"""Flows: the thread or task that code runs in, and what waits for one to be over.

asyncio does not say who waits for a task, but what it has hung on the task does: each callback
leads to what goes on when the task is done, and from there to the next.

    await task             task ── wake-up ──> waiting task
    gather, wait_for       task ── callback ─> future ── wake-up ──> waiting task
    TaskGroup              task ── callback ─> group ──> future ── wake-up ──> waiting task
    run_in_executor        work ──> its future ── callback ─> future ── wake-up ──> waiting task
    asyncio.run            task ── callback ─> the thread that the loop runs in

Nothing of asyncio is replaced. What is hung on it by somebody else leads nowhere: it may be there
to wake somebody up, or not.
"""

from __future__ import annotations

import concurrent.futures
import threading
import weakref
from asyncio import ALL_COMPLETED, AbstractEventLoop, Future, Queue, Task, current_task
from asyncio.events import _get_running_loop
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import islice
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Final, NamedTuple

STEPS_MAX: Final = 64
"""So many things are looked at, and so many callbacks of each: a bound on our own time."""

GATHERED_MAX: Final = 256
"""So many of those that are waited for together are looked at."""

_FEED: Final = ("outer", "waiter", "destination")
"""What asyncio calls the future that a callback of its own is to finish."""

_TELLING: Final = frozenset((*_FEED, "done", "return_when", "self", "source"))

_ASYNCIO: Final = ("asyncio.", "anyio.")


class Flow:
    """A thread, or one piece of work that a thread does for somebody else.

    Attributes:
        future: Finished by the work, if it is known.
        giver: The task that has handed the work over, if it was one.
        thread: Does the work, if it has begun.
    """

    __slots__ = ("__weakref__", "future", "giver", "thread")

    def __init__(self, giver: object = None) -> None:
        self.future: weakref.ref[object] | None = None
        self.giver = weakref.ref(giver) if isinstance(giver, Task) else None
        self.thread: weakref.ref[threading.Thread] | None = None

    def begin(self) -> Flow:
        """This thread does this from now on; what it did before, for `end`."""
        before = _here.flow
        self.thread = weakref.ref(threading.current_thread())
        _here.go_on(self)
        return before

    def end(self, before: Flow) -> None:
        """This thread does again what it did before."""
        _here.go_on(before)


class _Here(threading.local):
    """What this thread does."""

    def __init__(self) -> None:
        self.go_on(Flow())

    def go_on(self, flow: Flow) -> None:
        self.flow = flow
        _by_thread[threading.get_ident()] = flow


_by_thread: weakref.WeakValueDictionary[int, Flow] = weakref.WeakValueDictionary()
_here = _Here()
_works: weakref.WeakKeyDictionary[object, Flow] = weakref.WeakKeyDictionary()


def current() -> Flow | Task[object] | None:
    """The task that is running, else the thread's own flow; None in a callback of a loop."""
    loop = _get_running_loop()
    return _here.flow if loop is None else current_task(loop)


def loop_to_ask(flow: object, waiter: object) -> AbstractEventLoop | None:
    """The loop that has to be asked who waits for a flow; None if that can be seen from here.

    Args:
        flow: Is about to be over, in this thread.
        waiter: The flow or task that may wait for it.
    """
    giver = flow.giver() if isinstance(flow, Flow) and flow.giver is not None else None
    for task in (waiter, giver):
        if isinstance(task, Task):
            return None if is_here(task) else task.get_loop()
    return None


def is_here(flow: object) -> bool:
    """Whether a flow is this thread's, or a task's whose loop runs in this thread."""
    return flow is _here.flow or (isinstance(flow, Task) and flow.get_loop() is _get_running_loop())


def finishes(flow: Flow, future: object) -> None:
    """Know a flow by the future that it finishes, for as long as somebody has that."""
    flow.future = weakref.ref(future)
    _works[future] = flow


def is_over(thing: object) -> bool:
    """Whether a future of a thread's is done, or a thread has ended."""
    if isinstance(thing, threading.Thread):
        return not thing.is_alive()
    return isinstance(thing, concurrent.futures.Future) and thing.done()


def over_with(thing: object) -> Iterator[object]:
    """What is over when a future is done or a thread has ended: that, and the work of a future."""
    yield thing
    if not isinstance(thing, threading.Thread):
        work = _works.get(thing)
        if work is not None:
            yield work


def homes(things: Iterable[object]) -> Iterator[object]:
    """The threads of those that are pieces of work: they are over later, but are not forgotten.

    Work is forgotten with its future, which nobody may have kept.
    """
    for each in things:
        thread = each.thread() if isinstance(each, Flow) and each.thread is not None else None
        if thread is not None:
            yield thread


class Chain(NamedTuple):
    """What waits for a flow, and for that, and so on.

    Attributes:
        things: From the flow up to what the waiter is suspended on; if it does not wait for the
            flow, everything that was found.
        is_met: Whether the waiter waits for the flow.
        choice: How many of the things come before the first that also waits for others and goes on
            with whichever is done first; None if there is no such thing among them.
        suspended: The tasks among them, and the waiter: with what each is suspended on.
    """

    things: tuple[object, ...]
    is_met: bool
    choice: int | None
    suspended: tuple[tuple[object, object], ...]

    def holds(self) -> bool:
        """Whether all of the tasks are where they were."""
        return all(_suspended_on(task) is thing for task, thing in self.suspended)


def chain(flow: object, waiter: object) -> Chain:
    """Find out whether somebody waits for a flow.

    Args:
        flow: A flow, task or future; one that is over has been so for less than a turn of its loop.
        waiter: The flow or task that may wait for it.
    """
    awaited = _suspended_on(waiter)
    if awaited is flow:
        return Chain((flow,), True, None, ())
    if isinstance(flow, Future) and flow.done() and is_awaited(flow, waiter):
        return Chain((flow, awaited), True, None, ())
    below: dict[int, _Link] = {id(flow): (None, False)}
    things = [flow]
    for position, thing in enumerate(things):  # It grows meanwhile.
        for above, is_choice in islice(_above(thing), STEPS_MAX):
            if above is waiter or (above is awaited and awaited is not None):
                return _met(things, below, (position, is_choice), above, waiter)
            if id(above) not in below and len(things) < STEPS_MAX:
                below[id(above)] = (position, is_choice)
                things.append(above)
    return Chain(tuple(things), False, None, ())


_Link = tuple[int | None, bool]
"""Where the thing below is among those that were found, and whether this is a choice of it."""


def _met(
    found: list[object], below: dict[int, _Link], link: _Link, above: object, waiter: object
) -> Chain:
    """The way from the flow up to the waiter, or what it is suspended on, found from there."""
    things, choices = ([], []) if above is waiter else ([above], [False])
    position, is_choice = link
    while position is not None:
        things.append(found[position])
        choices.append(is_choice)
        position, is_choice = below[id(found[position])]
    things.reverse()
    if True not in choices:
        return Chain(tuple(things), True, None, ())
    choice = choices[::-1].index(True) + 1
    tasks = [each for each in (*things[choice:], waiter) if isinstance(each, Task)]
    return Chain(tuple(things), True, choice, tuple((each, _suspended_on(each)) for each in tasks))


def is_awaited(thing: object, waiter: object) -> bool:
    """Whether a task waits for a thing that is done by now, alone or with others (`gather`)."""
    awaited = _suspended_on(waiter)
    if awaited is None:
        return False
    return any(each is thing for each in (awaited, *islice(gathered(awaited), GATHERED_MAX)))


def gathered(thing: object) -> Iterable[object]:
    """What `asyncio.gather` waits for, if it is that."""
    return getattr(thing, "_children", ()) if isinstance(thing, Future) else ()


def has_left(group: object, waiter: object) -> bool:
    """Whether a task, which is running, has left a task group of its own, and so waited for all."""
    return (
        getattr(group, "_exiting", None) is True
        and getattr(group, "_parent_task", None) is waiter
        and not getattr(group, "_tasks", True)
    )


def when_done(thing: object, follow: Callable[[object], None]) -> None:
    """Be told once a task or a future of the loop that runs here is done."""
    if isinstance(thing, Future) and not thing.done() and thing.get_loop() is _get_running_loop():
        thing.add_done_callback(follow)


def _suspended_on(task: object) -> object:
    return getattr(task, "_fut_waiter", None) if isinstance(task, Task) else None


# What waits for a thing: each with whether it also waits for others, and for one of them only


def _above(thing: object) -> Iterator[tuple[object, bool]]:
    if isinstance(thing, Flow):
        yield from _above_work(thing)
    elif isinstance(thing, Future):
        for callback, _ in getattr(thing, "_callbacks", None) or ():
            yield from _told_by(callback, thing)
    elif isinstance(thing, concurrent.futures.Future):
        for callback in tuple(getattr(thing, "_done_callbacks", ())):
            yield from _told_by(callback, thing)
    else:
        yield from _pending(getattr(thing, "_on_completed_fut", None))


def _above_work(work: Flow) -> Iterator[tuple[object, bool]]:
    future = None if work.future is None else work.future()
    if isinstance(future, concurrent.futures.Future):
        yield future, False
        if future.done() and work.giver is not None:
            # Done before anybody could hang something on it; but what it is to finish knows it.
            awaited = _suspended_on(work.giver())
            for each in (awaited, *islice(gathered(awaited), GATHERED_MAX)):
                if _source(each) is future:
                    yield each, False


def _source(destination: object) -> object:
    """What finishes a future of asyncio, if that is a future of a thread's."""
    for callback, _ in getattr(destination, "_callbacks", None) or ():
        if isinstance(callback, FunctionType) and _is_asyncio(callback):
            source = _known(callback).get("source")
            if source is not None:
                return source
    return None


def _told_by(callback: object, thing: object) -> Iterator[tuple[object, bool]]:
    if isinstance(callback, (BuiltinMethodType, MethodType)):
        yield from _told_by_method(callback.__self__, thing)
    elif isinstance(callback, partial):
        if _is_asyncio(callback.func):  # `wait_for`, up to Python 3.11
            for each in callback.args:
                yield from _pending(each)
    elif isinstance(callback, FunctionType) and _is_asyncio(callback):
        if callback.__name__ == "_run_until_complete_cb" and isinstance(thing, Future):
            thread = _by_thread.get(getattr(thing.get_loop(), "_thread_id", None) or 0)
            if thread is not None:
                yield thread, False
        else:
            yield from _told_by_closure(callback)


def _told_by_method(owner: object, thing: object) -> Iterator[tuple[object, bool]]:
    if isinstance(owner, Task):
        if _suspended_on(owner) is thing:
            yield owner, False
    elif hasattr(owner, "_on_completed_fut"):
        yield owner, False
    else:  # `as_completed`, from Python 3.13 on
        yield from _getting(getattr(owner, "_done", None))


def _told_by_closure(callback: FunctionType) -> Iterator[tuple[object, bool]]:
    known = _known(callback)
    for name, value in known.items():
        if name in _FEED:
            is_choice = known.get("return_when", ALL_COMPLETED) != ALL_COMPLETED
            yield from _pending(value, is_choice=is_choice)
        elif name == "done":  # `as_completed`, up to Python 3.12
            yield from _getting(value)
        elif name == "self" and hasattr(value, "_on_completed_fut"):  # anyio
            yield value, False


def _known(function: FunctionType) -> dict[str, object]:
    """What a function knows of those around it, as far as it says who is told of what."""
    cells = function.__closure__ or ()
    return {name: cells[place].cell_contents for name, place in _telling(function.__code__)}


@cache
def _telling(code: CodeType) -> tuple[tuple[str, int], ...]:
    """Where among what it knows a function of asyncio's has that; there are few such functions."""
    names = enumerate(code.co_freevars)
    return tuple((name, place) for place, name in names if name in _TELLING)


def _pending(future: object, *, is_choice: bool = False) -> Iterator[tuple[object, bool]]:
    if isinstance(future, (Future, concurrent.futures.Future)) and not future.done():
        yield future, is_choice


def _getting(queue: object) -> Iterator[tuple[object, bool]]:
    if isinstance(queue, Queue):
        for getter in getattr(queue, "_getters", ()):
            yield from _pending(getter, is_choice=True)


def _is_asyncio(function: object) -> bool:
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and module.startswith(_ASYNCIO)
