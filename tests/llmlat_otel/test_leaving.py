"""The end of a process: once, the last one asked for first, and no fault keeps the rest from it."""

import multiprocessing.process
import multiprocessing.util
from functools import partial

import pytest

from llmlat_otel import leaving
from llmlat_otel.core.drops import when_dropped
from llmlat_otel.core.guard import faults


@pytest.fixture
def departure(monkeypatch):
    made = leaving._Departure()
    monkeypatch.setattr(leaving, "_departure", made)
    monkeypatch.setattr(leaving, "_watch", lambda: None)
    return made


class Thing:
    """Can be watched."""


def test_everything_is_done_once_with_the_last_first(departure):
    done: list[str] = []
    for each in ("first", "second"):
        leaving.when_leaving(partial(done.append, each))
    departure.leave()
    departure.leave()
    assert done == ["second", "first"]


def test_a_fault_keeps_nothing_else_from_being_done(departure):
    done = []
    leaving.when_leaving(lambda: done.append("first"))
    leaving.when_leaving(lambda: 1 / 0)
    before = faults().get("exit", 0)
    departure.leave()
    assert done == ["first"]
    assert faults()["exit"] == before + 1


def test_what_is_still_open_is_followed_up_before_anything_else(departure):
    done = []
    thing = Thing()
    when_dropped(thing, lambda: done.append("stream"))
    leaving.when_leaving(lambda: done.append("provider"))
    departure.leave()
    assert done == ["stream", "provider"]


def test_a_child_has_to_ask_for_itself(departure):
    done = []
    leaving.when_leaving(lambda: done.append("parent's"))
    departure.leave()
    departure.forked()
    leaving.when_leaving(lambda: done.append("child's"))
    departure.leave()
    assert done == ["parent's", "child's"]


def test_multiprocessing_is_asked_only_by_children_of_its_making(departure, monkeypatch):
    asked = []
    monkeypatch.setattr(multiprocessing.util, "Finalize", lambda *a, **kw: asked.append((a, kw)))
    departure.finalize()
    assert asked == []
    monkeypatch.setattr(multiprocessing.process, "parent_process", object)
    departure.finalize()
    assert asked == [((None, departure.leave), {"exitpriority": 0})]
