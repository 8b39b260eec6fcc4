"""Drops: told once, at once, at exit too; never within the garbage collector, nor to a fork."""

import _thread
import gc
import subprocess
import sys
import threading
from typing import Any

import pytest

from llmlat_otel.core.drops import when_dropped
from llmlat_otel.core.guard import faults


class Thing:
    """Can be dropped."""

    def __init__(self):
        self.itself: Any = None


def test_a_drop_is_told_once_and_at_once():
    told = []
    thing = Thing()
    when_dropped(thing, lambda: told.append(1))
    assert told == []
    del thing
    assert told == [1]


def cycle(follow):
    thing = Thing()
    thing.itself = thing
    when_dropped(thing, follow)


def test_what_the_garbage_collector_finds_is_told_outside_of_it():
    """The collector runs anywhere, also within a lock that ending a span would take."""
    lock, ended = threading.Lock(), threading.Event()

    def follow():
        if lock.acquire(timeout=10):
            ended.set()

    with lock:
        cycle(follow)
        gc.collect()
    assert ended.wait(timeout=10)


def test_no_thread_to_be_had_is_a_fault_of_ours(monkeypatch, recwarn):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    before = faults().get("drops", 0)
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    cycle(lambda: None)
    gc.collect()
    assert faults()["drops"] == before + 1
    assert list(recwarn) == [], "pytest warns of what a weak reference's callback raises"


def test_what_is_forgotten_is_not_told(monkeypatch):
    monkeypatch.setattr(_thread, "start_new_thread", lambda *_: pytest.fail("a thread"))
    told: list[int] = []
    thing = Thing()
    thing.itself = thing
    when_dropped(thing, lambda: told.append(1))()
    del thing
    gc.collect()
    assert told == []


def test_however_much_one_collection_finds_one_thread_follows_it_up(monkeypatch):
    started, told, every = [], [], threading.Event()
    start = _thread.start_new_thread

    def counted(work, args):
        started.append(work)
        return start(work, args)

    def follow():
        told.append(threading.get_ident())
        if len(told) == 1_000:
            every.set()

    monkeypatch.setattr(_thread, "start_new_thread", counted)
    gc.disable()
    try:
        for _ in range(1_000):
            cycle(follow)
        gc.collect()
    finally:
        gc.enable()
    assert every.wait(timeout=10)
    assert threading.get_ident() not in told
    assert len(started) < 20, "one at a time, and a new one only if the last was through"


def test_a_drop_is_noted_before_what_dies_with_it_is_finalised():
    order: list[str] = []

    class Closing(Thing):
        def __del__(self):
            order.append("finalised")

    thing, other = Thing(), Closing()
    thing.itself, other.itself = other, thing
    when_dropped(thing, lambda: None, lambda: order.append("noted"))
    del thing, other
    gc.collect()
    assert order == ["noted", "finalised"]


def test_what_follows_a_drop_may_fail(recwarn):
    def fail():
        raise LookupError

    before = faults().get("drops", 0)
    thing = Thing()
    when_dropped(thing, fail, fail)
    del thing
    assert faults()["drops"] == before + 2
    assert list(recwarn) == []


PROGRAM = """
import atexit, os, weakref
class Thing: pass
early, late = Thing(), Thing()
weakref.finalize(early, lambda: None)
from llmlat_otel.core.drops import when_dropped
atexit.register(print, "provider", flush=True)
when_dropped(late, lambda: print("told", flush=True))
"""


def run(program):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()


def test_what_is_never_dropped_is_told_at_exit_before_what_was_there_already_exits():
    assert run(PROGRAM) == ["told", "provider"]


def test_a_forked_child_is_not_told_of_what_is_its_parents():
    child = "if (pid := os.fork()) == 0:\n    del late\nelse:\n    os.waitpid(pid, 0)\n"
    assert run(PROGRAM + child) == ["provider", "told", "provider"]
