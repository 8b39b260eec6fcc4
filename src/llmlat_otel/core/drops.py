"""Drops: what is told when the last reference to an object is gone."""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from functools import cache

from llmlat_otel.core.guard import guarded


class _Collection(threading.local):
    """Whether this thread is collecting garbage."""

    is_running = False

    def changed(self, phase: str, _: Mapping[str, int]) -> None:
        self.is_running = phase == "start"


_collection = _Collection()
gc.callbacks.append(_collection.changed)


class _Watch(weakref.ref[object]):
    """Waits for an object to be dropped."""

    __slots__ = ("follow",)
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    follow: Callable[[], None]


_watches: set[_Watch] = set()
if hasattr(os, "register_at_fork"):  # What was under way is the parent's to end.
    os.register_at_fork(after_in_child=_watches.clear)


def when_dropped(thing: object, follow: Callable[[], None]) -> None:
    """Call a function when an object is dropped, or at exit if it never is."""
    watch = _Watch(thing, _dropped)
    watch.follow = follow
    _watches.add(watch)
    _watch_exit()


@cache
def _watch_exit() -> None:
    """Registered late, to run before the exit of a tracer provider that is there by now.

    `weakref.finalize` registers when anybody first uses it, and then runs after that.
    """
    atexit.register(_exiting)


def _exiting() -> None:
    for watch in tuple(_watches):
        _dropped(watch)


def _dropped(watch: _Watch) -> None:
    """Follow up a drop, in a thread of its own if the garbage collector has found the object.

    Garbage is collected wherever memory is allocated, perhaps within one of the locks that ending
    a span or recording a metric takes: to wait for it there would be to wait forever.
    """
    _watches.discard(watch)
    if _collection.is_running:
        guarded("drops", _thread.start_new_thread, watch.follow, ())
    else:
        watch.follow()
