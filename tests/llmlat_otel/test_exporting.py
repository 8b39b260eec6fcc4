"""Flush and shutdown: whose provider, what they answer, and that they always end."""

import asyncio
import threading

import pytest

from llmlat_otel import exporting
from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.guard import faults
from llmlat_otel.core.lifespans import Lifespan
from llmlat_otel.destinations import Destination
from llmlat_otel.exporting import (
    destinations,
    flush,
    flush_async,
    is_open,
    opened,
    shutdown,
    shutdown_async,
)
from llmlat_otel.testing import MS, ManualClock, recorded


class Provider:
    """Does what it is asked when it may, as well as it is told to."""

    def __init__(self):
        self.asked = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.fails = None

    def force_flush(self, timeout_millis=30_000):
        self.asked.append(f"flush {timeout_millis}")
        assert self.may_go_on.wait(30)
        if self.fails is not None:
            raise self.fails
        return True

    def shutdown(self):
        self.asked.append("shutdown")
        assert self.may_go_on.wait(30)


@pytest.fixture(autouse=True)
def way(monkeypatch):
    """A way out of the test's own; what is done at exit is not asked for.

    A test ends when its errands have: what one of them finds wrong is not counted in the next test.
    """
    errands, done = exporting._Errands(), threading.Event()
    monkeypatch.setattr(exporting, "_way", exporting._Way())
    monkeypatch.setattr(exporting, "_errands", errands)
    monkeypatch.setattr(exporting, "when_leaving", lambda work: None)
    yield
    errands.put(done.set)
    assert done.wait(30)


@pytest.fixture
def theirs(monkeypatch):
    """The provider that the application has set."""
    provider = Provider()
    monkeypatch.setattr(Emitter, "their_provider", lambda self: provider)
    yield provider
    provider.may_go_on.set()


@pytest.fixture
def ours():
    provider = Provider()
    opened(provider, [Destination("fake", None)])
    yield provider
    provider.may_go_on.set()


def call(function, timeout_s):
    result = function(timeout_s)
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


FLUSHES = [flush, flush_async]
SHUTDOWNS = [shutdown, shutdown_async]
ALL = [*FLUSHES, *SHUTDOWNS]


@pytest.mark.parametrize("function", ALL)
def test_where_there_is_no_provider_there_is_nothing_to_do(function):
    assert call(function, 5.0) is True


@pytest.mark.parametrize("function", FLUSHES)
def test_both_providers_are_flushed(function, ours, theirs):
    assert call(function, 5.0) is True
    assert (ours.asked, theirs.asked) == (["flush 5000"], ["flush 5000"])


@pytest.mark.parametrize("function", SHUTDOWNS)
def test_only_ours_is_shut_down_and_only_once(function, ours, theirs):
    assert is_open()
    assert call(function, 5.0) is True
    assert call(function, 5.0) is True
    assert (ours.asked, theirs.asked) == (["shutdown"], [])
    assert not is_open()
    assert [each.is_shut for each in destinations() or ()] == [True]


@pytest.mark.parametrize("function", ALL)
def test_a_provider_that_hangs_is_not_waited_for(function, ours):
    ours.may_go_on.clear()
    assert call(function, 0.01) is False


@pytest.mark.parametrize("function", FLUSHES)
def test_a_flush_that_hangs_leaves_one_thread_however_often_it_is_tried(function, ours):
    ours.may_go_on.clear()
    before = threading.active_count()
    assert [call(function, 0.01) for _ in range(5)] == [False] * 5
    assert threading.active_count() <= before + 1
    ours.may_go_on.set()
    assert call(function, 30.0) is True


@pytest.mark.parametrize("function", FLUSHES)
def test_a_provider_that_raises_keeps_it_to_itself(function, ours, theirs):
    theirs.fails = ValueError("theirs")
    before = faults().get("flush", 0)
    assert call(function, 5.0) is False
    assert ours.asked == ["flush 5000"]
    assert faults()["flush"] == before + 1


@pytest.mark.parametrize("lost", ["failed", "dropped", "rejected"])
def test_a_flush_whose_spans_have_not_arrived_says_so(lost, ours):
    (destination,) = destinations() or ()
    flushed = ours.force_flush

    def lose(timeout_millis):
        setattr(destination, lost, 1)
        return flushed(timeout_millis)

    ours.force_flush = lose
    assert flush() is False


@pytest.mark.parametrize("function", ALL)
def test_nonsense_is_not_raised(function):
    assert call(function, "soon") is False


def test_where_no_thread_can_be_started_it_is_done_at_once(ours, monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    assert flush() is True
    assert ours.asked == ["flush 5000"]


def test_a_coroutine_that_is_cancelled_is_cancelled(ours):
    ours.may_go_on.clear()

    async def main():
        waiting = asyncio.ensure_future(flush_async(30.0))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert ours.asked in ([], ["flush 30000"])


def test_a_loop_that_has_ended_meanwhile_is_left_alone(ours):
    ours.may_go_on.clear()
    before = faults().get("flush", 0)
    assert asyncio.run(flush_async(0.01)) is False
    ours.may_go_on.set()
    assert flush(30.0) is True, "the one before is over by now"
    assert faults().get("flush", 0) == before


def test_a_child_has_no_provider_yet_and_keeps_the_connections_of_its_parent(ours):
    exporting._renew()
    assert destinations() is None
    assert [each.provider for each in exporting._way.inherited] == [ours]


# Applications that end before the process does


def held_up(monkeypatch, *flushes):
    """For how long each of some lifespans may wait: (seconds that its flush takes, its success)."""
    clock = ManualClock()
    waits: list[float] = []

    def wait(_, timeout_s):
        took_s, is_done = flushes[len(waits)]
        waits.append(timeout_s)
        clock.advance(round(took_s * 1000) * MS)
        return is_done

    monkeypatch.setattr(exporting, "_wait", wait)
    with recorded(clock=clock):
        for _ in flushes:
            exporting._flush_ours()
    return waits


def test_applications_that_end_one_after_another_wait_together_for_a_dead_collector(
    ours, monkeypatch
):
    assert held_up(monkeypatch, *[(1, False)] * 9) == [3.0, 2.0, 1.0]


def test_what_arrives_gives_the_next_application_all_of_its_time(ours, monkeypatch):
    assert held_up(monkeypatch, (1, False), (1, True), (3, False), (3, False)) == [3.0, 2.0, 3.0]


def test_an_application_that_ends_is_held_up_once_also_in_a_child_with_another_provider(ours):
    async def app(scope, receive, send):
        pass

    opened(ours, [Destination("fake", None)])  # as a child of a fork does
    asyncio.run(Lifespan({}, None, None).run(app))
    assert ours.asked == ["flush 3000"]
