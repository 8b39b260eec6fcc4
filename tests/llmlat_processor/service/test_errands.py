"""What is done now and then is done again, whatever it raises, until the end."""

from __future__ import annotations

from threading import Event
from threading import enumerate as threads

import pytest

from llmlat_processor.service.errands import Errand, Errands

WAIT_S = 20
OFTEN_S = 0.001


class Doing:
    """Counts how often it is done, and tells when that was often enough."""

    def __init__(self, times: int, fault: Exception | None = None) -> None:
        self.count = 0
        self.enough = Event()
        self._times = times
        self._fault = fault

    def __call__(self) -> None:
        self.count += 1
        if self.count >= self._times:
            self.enough.set()
        if self._fault is not None:
            raise self._fault


def test_each_errand_is_done_again_and_again() -> None:
    first, second = Doing(3), Doing(3)
    errands = Errands(Errand(OFTEN_S, first), Errand(2 * OFTEN_S, second))

    assert first.enough.wait(WAIT_S)
    assert second.enough.wait(WAIT_S)
    errands.stop()


def test_one_that_fails_is_logged_and_keeps_no_other_from_its_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing, other = Doing(2, ZeroDivisionError()), Doing(2)
    errands = Errands(Errand(OFTEN_S, failing), Errand(OFTEN_S, other))

    assert failing.enough.wait(WAIT_S)
    assert other.enough.wait(WAIT_S)
    errands.stop()

    assert "please report this" in caplog.text


def test_the_end_waits_for_none_that_is_not_due() -> None:
    never = Doing(1)
    errands = Errands(Errand(3_600, never))
    errands.stop()

    assert never.count == 0
    assert Errands.THREAD not in {thread.name for thread in threads()}


def test_the_end_waits_for_the_one_that_is_being_done() -> None:
    begun, go_on, done = Event(), Event(), Event()

    def slow() -> None:
        begun.set()
        go_on.wait(WAIT_S)
        done.set()

    errands = Errands(Errand(0, slow))
    assert begun.wait(WAIT_S)
    go_on.set()
    errands.stop()

    assert done.is_set()
