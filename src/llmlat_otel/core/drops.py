"""Drops: what is told when the last reference to an object is gone."""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final

from llmlat_otel.core.guard import guarded

_TARGET: Final = "drops"


class _Collection(threading.local):
    """Whether this thread is collecting garbage."""

    is_running = False

    def changed(self, phase: str, _: Mapping[str, int]) -> None:
        self.is_running = phase == "start"


_collection = _Collection()
gc.callbacks.append(_collection.changed)


class _Watch(weakref.ref[object]):
    """Waits for an object to be dropped."""

    __slots__ = ("follow", "note")
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    follow: Callable[[], None]
    note: Callable[[], None] | None


_watches: set[_Watch] = set()
_found: deque[Callable[[], None]] = deque()
_following = threading.Lock()


def when_dropped(
    thing: object, follow: Callable[[], None], note: Callable[[], None] | None = None
) -> Callable[[], None]:
    """Call a function when an object is dropped, or at exit if it never is.

    Args:
        thing: The object.
        follow: Follows up its drop, perhaps in a thread of its own.
        note: Is called before anything that dies with the object is finalised. It may be within
            the garbage collector: it takes no lock.

    Returns:
        Forgets about it: nothing is called any more.
    """
    watch = _Watch(thing, _dropped)
    watch.follow, watch.note = follow, note
    _watches.add(watch)
    _watch_exit()
    return partial(_watches.discard, watch)


@cache
def _watch_exit() -> None:
    """Registered late, to run before the exit of a tracer provider that is there by now.

    `weakref.finalize` registers when anybody first uses it, and then runs after that.
    """
    atexit.register(follow_all)


def follow_all() -> None:
    """Follow up, as the process ends, what has not been dropped."""
    for watch in _watches.copy():
        _dropped(watch)


def _dropped(watch: _Watch) -> None:
    """Follow up a drop, in a thread of its own if the garbage collector has found the object.

    Garbage is collected wherever memory is allocated, perhaps within one of the locks that ending
    a span or recording a metric takes: to wait for it there would be to wait forever.
    """
    _watches.discard(watch)
    if watch.note is not None:
        guarded(_TARGET, watch.note)
    if _collection.is_running:
        _found.append(watch.follow)
        guarded(_TARGET, _follow_elsewhere)
    else:
        guarded(_TARGET, watch.follow)


def _follow_elsewhere() -> None:
    """Have a thread follow up what was found: one, however much the collector finds."""
    if _following.acquire(blocking=False):
        try:
            _thread.start_new_thread(_follow_all, ())
        except BaseException:
            _following.release()
            raise


def _follow_all() -> None:
    while True:
        while _found:
            guarded(_TARGET, _found.popleft())
        _following.release()
        # More may have been found after the last look, by somebody who saw the lock taken.
        if not _found or not _following.acquire(blocking=False):
            return


def _forget_all() -> None:
    """In a forked child: what was under way is the parent's to end."""
    global _following  # noqa: PLW0603 - the thread that held it is the parent's too
    _watches.clear()
    _found.clear()
    _following = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
