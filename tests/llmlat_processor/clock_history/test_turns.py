"""A step parts the time in two: two accounts that take turns are none."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.clock_history import Became, ClockHistory
from tests.llmlat_processor.clock_history.worlds import LATER, MS, STILL, S, World, trace


@given(st.lists(st.booleans(), min_size=4, max_size=40), st.integers(-3 * S, 3 * S))
def test_no_step_is_told_backwards_whoever_takes_turns(turns: list[bool], jump_ns: int) -> None:
    history = ClockHistory()
    worlds = (STILL, replace(STILL, offset_ns=jump_ns))
    for number, is_other in enumerate(turns):
        history.learn(trace(number), worlds[is_other].call(number * 1_000, 2, 10, 2))

    for step in history.steps:
        assert step.after_ns <= step.by_ns


def test_two_accounts_that_take_turns_are_no_step() -> None:
    history = ClockHistory()
    for number in range(40):
        world = LATER if number % 3 == 2 else STILL
        history.learn(trace(number), world.call(number * 1_000, 2, 10, 2))

    assert not history.steps
    assert history.became == {Became.LEARNED: 54, Became.HELD: 26}


#   first  ──●─●─●┐     it is set back by a minute, after which its readings are less than before
#               ┌──┘
#               └●─●─●──
def test_a_first_clock_that_is_set_back_is_a_step_once_nobody_tells_the_old_for_long() -> None:
    back_ms = 60_000
    since = World(30 * MS + back_ms * MS, [0])
    calls_since = [since.call(105_000 - back_ms + n * 1_000, 2, 10, 2) for n in range(13)]
    history = ClockHistory()
    for second in range(100, 105):
        history.learn(trace(second), STILL.call(second * 1_000, 2, 10, 2))
    for number in range(5):
        history.learn(trace(number), calls_since[number])
    history.learn(trace(105), STILL.call(105_000, 2, 10, 2))
    for number in range(5, 12):
        history.learn(trace(number), calls_since[number])
    assert not history.steps  # one that tells the old account began the count again
    history.learn(trace(12), calls_since[12])

    (step,) = history.steps
    assert 0 <= back_ms * MS - step.amount_ns < 20 * MS
    assert step.by_ns < step.after_ns <= step.by_ns + back_ms * MS
