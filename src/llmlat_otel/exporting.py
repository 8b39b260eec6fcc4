"""Our own provider's way out, and the ways to wait for it: flush and shutdown, that end in time."""

from __future__ import annotations

import _thread
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from llmlat_otel.core.guard import guarded
from llmlat_otel.core.lifespans import when_over
from llmlat_otel.core.runtime import runtime
from llmlat_otel.leaving import when_leaving

if TYPE_CHECKING:
    from asyncio import Future

    from llmlat_otel.destinations import Destination

EXIT_TIMEOUT_S: Final = 3.0
"""At the process's end no export begins later than this; one under way has its own timeout."""

TIMEOUT_S: Final = 5.0

_NS_PER_S: Final = 1_000_000_000

_logger = logging.getLogger("llmlat_otel")


class Provider(Protocol):
    """What is asked of a tracer provider of the OpenTelemetry SDK."""

    def force_flush(self, timeout_millis: int = ..., /) -> bool:
        """Send what has ended."""

    def shutdown(self) -> object:
        """Send what has ended, and take no more."""


class _Ours(NamedTuple):
    """The provider that we have made, and where its spans go."""

    provider: Provider
    destinations: Sequence[Destination]

    def flush(self, timeout_s: float) -> bool:
        """Send what has ended; whether it has arrived."""
        lost = [each.lost for each in self.destinations]
        is_done = self.provider.force_flush(round(timeout_s * 1000))
        return is_done and lost == [each.lost for each in self.destinations]

    def shutdown(self, timeout_s: float) -> bool:
        """The same, and take no more."""
        lost = [each.lost for each in self.destinations]
        clock = runtime().clock
        for each in self.destinations:
            each.give_up_ns = clock.now_ns() + round(timeout_s * _NS_PER_S)
        self.provider.shutdown()
        for each in self.destinations:
            each.is_shut = True
        return lost == [each.lost for each in self.destinations]


class _Way:
    """The way out of this process.

    Attributes:
        ours: Our own provider, if there is one.
        is_shut: Whether it was shut down; no other is made then.
        patience_s: How long applications that end are still held up for nothing.
        refused: What the environment says of exporters and cannot be used.
    """

    __slots__ = ("inherited", "is_shut", "ours", "patience_s", "refused")

    def __init__(self) -> None:
        self.ours: _Ours | None = None
        self.patience_s = EXIT_TIMEOUT_S
        self.is_shut = False
        self.refused: dict[str, None] = {}
        # A parent's connections are never closed by a child: gRPC may wait there forever.
        self.inherited: list[_Ours] = []

    def forked(self) -> None:
        """This is a child: its provider is still to be made."""
        if self.ours is not None:
            self.inherited.append(self.ours)
        self.ours = None
        self.patience_s = EXIT_TIMEOUT_S


class _Errands:
    """What may hang, done one after another in a thread of its own, for as long as there is any."""

    __slots__ = ("_is_serving", "_lock", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._is_serving = False

    def put(self, errand: Callable[[], object]) -> None:
        """Have an errand done; at once where no thread can be started any more."""
        with self._lock:
            self._waiting.append(errand)
            if self._is_serving:
                return
            self._is_serving = True
        # Not by `threading`, whose threads carry the current span of whoever starts them.
        if guarded("flush", _thread.start_new_thread, self._serve, ()) is None:
            self._serve()  # The interpreter is ending, or has no thread left.

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_serving = False
                    return
                errand = self._waiting.popleft()
            guarded("flush", errand)


_way = _Way()
_errands = _Errands()


def _renew() -> None:
    global _errands  # noqa: PLW0603 - one per process
    _errands = _Errands()
    _way.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def is_open() -> bool:
    """Whether spans may still be sent by us."""
    return not _way.is_shut


def opened(provider: Provider, destinations: Sequence[Destination]) -> None:
    """A provider of ours has been made; it is shut down as the process ends."""
    _way.ours = _Ours(provider, destinations)
    when_leaving(_leave)


def refuse(what: str) -> None:
    """Part of what the environment says of exporters cannot be used; it is warned of once."""
    if what not in _way.refused:
        _way.refused[what] = None
        _logger.warning("%s", what)


def refused() -> Sequence[str]:
    """What the environment says of exporters and cannot be used, as it was warned of."""
    return tuple(_way.refused)


def destinations() -> Sequence[Destination] | None:
    """Where the spans of our own provider go; None if there is none."""
    return None if _way.ours is None else _way.ours.destinations


def flush(timeout_s: float = TIMEOUT_S) -> bool:
    """Send every span that has ended, and wait for it.

    Spans under way are not ended. A provider that the application has set is asked to do the same.

    Args:
        timeout_s: Seconds to wait at most, whatever becomes of the destination.

    Returns:
        Whether all has arrived, as far as exporters tell. It never raises.
    """
    return guarded("flush", _wait, _flush, timeout_s) is True


async def flush_async(timeout_s: float = TIMEOUT_S) -> bool:
    """The same, while the event loop goes on (asyncio's; any other one waits).

    Args:
        timeout_s: Seconds to wait at most.

    Returns:
        Whether all has arrived. Nothing but a cancellation is raised.
    """
    future = guarded("flush", _begin, _flush, timeout_s)
    return flush(timeout_s) if future is None else await future


def shutdown(timeout_s: float = TIMEOUT_S) -> bool:
    """Send every span that has ended, and export no more; libraries stay instrumented.

    A provider that the application has set is the application's to shut down, and goes on.

    Args:
        timeout_s: Seconds to wait at most, whatever becomes of the destination.

    Returns:
        Whether all has arrived, as far as exporters tell. It never raises.
    """
    return guarded("shutdown", _wait, _shutdown, timeout_s) is True


async def shutdown_async(timeout_s: float = TIMEOUT_S) -> bool:
    """The same, while the event loop goes on (asyncio's; any other one waits).

    Args:
        timeout_s: Seconds to wait at most.

    Returns:
        Whether all has arrived. Nothing but a cancellation is raised.
    """
    future = guarded("shutdown", _begin, _shutdown, timeout_s)
    return shutdown(timeout_s) if future is None else await future


def _flush(timeout_s: float) -> bool:
    is_theirs_done = guarded("flush", _flush_theirs, timeout_s) is True
    return (_way.ours is None or _way.ours.flush(timeout_s)) and is_theirs_done


def _flush_theirs(timeout_s: float) -> bool:
    """Flush the application's provider, if it has one, and that can be flushed."""
    force_flush = getattr(runtime().emitter.their_provider(), "force_flush", None)
    return force_flush is None or force_flush(round(timeout_s * 1000)) is not False


def _shutdown(timeout_s: float) -> bool:
    if _way.is_shut:
        return True
    _way.is_shut = True
    return _way.ours is None or _way.ours.shutdown(timeout_s)


def _flush_ours() -> None:
    """An application has ended: others of this process may go on, and end, and begin again.

    A dead destination costs all of them together what it costs one.
    """
    ours, way, clock = _way.ours, _way, runtime().clock
    if ours is None or way.patience_s <= 0:
        return
    begun_ns = clock.now_ns()
    if _wait(ours.flush, way.patience_s):
        way.patience_s = EXIT_TIMEOUT_S
    else:
        way.patience_s -= (clock.now_ns() - begun_ns) / _NS_PER_S


when_over(_flush_ours)  # Once: a child of a fork has the same list, and makes its own provider.


def _leave() -> None:
    _shutdown(EXIT_TIMEOUT_S)


def _wait(work: Callable[[float], bool], timeout_s: float) -> bool:
    """Do something in the thread for it; whether it was done, and well, in time."""
    done, results = threading.Event(), []

    def errand() -> None:
        try:
            results.append(guarded("flush", work, timeout_s))
        finally:
            done.set()

    _errands.put(errand)
    return done.wait(timeout_s) and results == [True]


def _begin(work: Callable[[float], bool], timeout_s: float) -> Future[bool] | None:
    """The same, for a coroutine to await; None where there is no loop of asyncio."""
    import asyncio  # noqa: PLC0415 - 30 ms of an import that most programs spend for themselves

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    future: Future[bool] = loop.create_future()

    def finish(is_done: bool) -> None:
        if not future.done():
            future.set_result(is_done)

    def errand() -> None:
        is_done = guarded("flush", work, timeout_s) is True
        if not loop.is_closed():
            loop.call_soon_threadsafe(guarded, "flush", finish, is_done)

    timer = loop.call_later(timeout_s, guarded, "flush", finish, False)
    future.add_done_callback(lambda _: guarded("flush", timer.cancel))
    _errands.put(errand)
    return future
