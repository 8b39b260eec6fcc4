"""What is known of clocks across traces: always true, ever tighter, and not shaken by one trace."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.clock_history import Became, ClockHistory, HistorySettings
from llmlat_processor.clock_history.cones import Bound
from llmlat_processor.model import UNKNOWN, Interval, Message
from llmlat_processor.model.clock_history import Drift, Stretch
from tests.llmlat_processor.clock_history.worlds import (
    FIRST,
    LATER,
    MS,
    SECOND,
    STILL,
    WORLDS,
    S,
    World,
    calls,
    contains,
    is_within,
    trace,
)

ROOMY = HistorySettings(bounds=1_000)
WINDOW_MS = 120_000
FEW = calls(2 * WINDOW_MS - 1_000, 7)


def learned(world: World, told, settings: HistorySettings = ROOMY) -> ClockHistory:
    history = ClockHistory(settings)
    for number, call in enumerate(told):
        history.learn(trace(number), world.call(*call))
    return history


def bounds_of(history: ClockHistory) -> list[Bound]:
    """All bounds that are kept of the only pair, with their witnesses."""
    windows = history.known[FIRST, SECOND].epoch.windows
    return [bound for window in windows for bound in window.evidence.bounds()]


@given(WORLDS, calls(4 * WINDOW_MS, 30), st.integers(0, 4 * WINDOW_MS), st.integers(1, 4))
def test_the_interval_contains_the_truth_at_any_time_however_little_is_kept(
    world: World, told, at_ms: int, bounds: int
) -> None:
    for settings in (ROOMY, HistorySettings(bounds=bounds)):
        history = learned(world, sorted(told), settings)

        assert contains(history.interval(FIRST, SECOND, at_ms * MS), world.offset_at(at_ms))
        assert not history.steps
        assert not history.became[Became.HELD]
        for stretch in history.stretches():
            assert contains(stretch.interval, world.offset_at(stretch.at_ns // MS))


@given(st.integers(-200, 200), st.integers(-5 * S, 5 * S), calls(3 * WINDOW_MS, 30))
def test_of_a_constant_rate_the_drift_and_the_tighter_interval_are_true(rate, offset, told) -> None:
    world = World(offset, [rate])
    for stretch in learned(world, sorted(told)).stretches():
        assert stretch.drift is not None
        assert stretch.drift.low_ppb <= rate * 1_000 <= stretch.drift.high_ppb
        assert stretch.steady is not None
        assert is_within(stretch.steady, stretch.interval)
        assert contains(stretch.steady, world.offset_at(stretch.at_ns // MS))


@given(WORLDS, calls(WINDOW_MS - 2_000, 12), st.randoms(use_true_random=False))
def test_the_order_of_traces_changes_nothing_within_a_window(world: World, told, random) -> None:
    numbered = list(enumerate(told))
    shuffled = list(numbered)
    random.shuffle(shuffled)
    one, other = ClockHistory(ROOMY), ClockHistory(ROOMY)
    for history, order in ((one, numbered), (other, shuffled)):
        for number, call in order:
            history.learn(trace(number), world.call(*call), {FIRST: [f"app-{number}"]})

    assert list(one.stretches()) == list(other.stretches())
    assert bounds_of(one) == bounds_of(other)
    assert one.services(FIRST, SECOND) == other.services(FIRST, SECOND)
    assert one.became == other.became


@given(WORLDS, calls(5 * WINDOW_MS, 7), st.randoms(use_true_random=False))
def test_nor_does_it_change_the_windows_that_are_kept(world: World, told, random) -> None:
    in_order = learned(world, sorted(told))
    mixed = ClockHistory(ROOMY)
    numbered = list(enumerate(sorted(told)))
    random.shuffle(numbered)
    for number, call in numbered:
        mixed.learn(trace(number), world.call(*call))

    assert list(mixed.stretches()) == list(in_order.stretches())


@given(WORLDS, FEW, FEW, st.integers(0, 2 * WINDOW_MS))
def test_learning_more_only_tightens_and_so_does_merging(world: World, some, more, at_ms) -> None:
    history, other, whole = learned(world, some), ClockHistory(ROOMY), learned(world, some)
    before = history.interval(FIRST, SECOND, at_ms * MS)
    for number, call in enumerate(more, start=100):
        other.learn(trace(number), world.call(*call))
        whole.learn(trace(number), world.call(*call))
    history.merge(other)

    merged = history.interval(FIRST, SECOND, at_ms * MS)
    assert is_within(merged, before)
    assert merged == whole.interval(FIRST, SECOND, at_ms * MS)


def test_widths_are_those_of_the_transits_and_grow_with_the_drift() -> None:
    history = learned(STILL, [(1_000, 3, 100, 5)])

    # The request is a bound at 1,000 ms, the answer one at 1,108 ms.
    drift_ns = 108 * 200
    assert history.interval(FIRST, SECOND, 1_000 * MS) == Interval(25 * MS - drift_ns, 33 * MS)
    assert history.interval(FIRST, SECOND, 1_108 * MS) == Interval(25 * MS, 33 * MS + drift_ns)
    assert history.interval(SECOND, FIRST, 1_108 * MS) == Interval(-33 * MS - drift_ns, -25 * MS)
    assert history.interval(FIRST, "nobody", 0) == UNKNOWN


def test_the_tolerance_of_stamps_moves_the_instant_of_a_bound_as_well() -> None:
    history = ClockHistory()
    request = STILL.request(0, 2)._replace(epsilon_ns=3 * MS, tail_ns=2 * MS)
    history.learn(trace(1), [request])

    assert history.interval(FIRST, SECOND, 0) == Interval(None, 37 * MS + 5 * 200)


def test_a_stretch_says_what_it_is_made_of() -> None:
    history = ClockHistory()
    history.learn(trace(1), STILL.call(1_000, 2, 10, 2), {FIRST: ["adviser"], SECOND: ["vllm"]})
    history.learn(trace(2), STILL.call(61_000, 2, 10, 2), {FIRST: ["adviser", "b", "c", "a"]})

    (stretch,) = history.stretches()

    assert stretch == Stretch(
        FIRST,
        SECOND,
        epoch=0,
        start_ns=0,
        end_ns=120 * S,
        at_ns=1_000 * MS,
        interval=Interval(28 * MS - 14 * 200, 32 * MS),
        steady=stretch.steady,
        drift=stretch.drift,
        messages=4,
        traces=2,
    )
    assert stretch.drift == Drift(-66_652, 66_683)
    assert history.pairs() == [(FIRST, SECOND)]
    assert history.services(FIRST, SECOND) == (("a", "adviser", "b"), ("vllm",))
    assert history.services("who", "else") == ((), ())


def test_windows_that_have_to_go_are_told_once() -> None:
    gone: list[Stretch] = []
    history = ClockHistory(on_gone=gone.append)
    for window in range(5):
        history.learn(trace(window), STILL.call(window * WINDOW_MS + 5, 1, 1, 1))

    kept = [stretch.start_ns // (WINDOW_MS * MS) for stretch in history.stretches()]
    assert [stretch.start_ns // (WINDOW_MS * MS) for stretch in gone] == [0, 1, 2]
    assert kept == [3, 4]


def stepped(settings: HistorySettings = ROOMY, *, since: int = 2) -> ClockHistory:
    """Five traces before a step of 50 ms, and some since."""
    history = learned(STILL, [(second * 1_000, 2, 10, 2) for second in range(5)], settings)
    for number in range(since):
        history.learn(trace(50 + number), LATER.call(5_000 + number * 1_000, 2, 10, 2))
    return history


def test_one_contradicting_trace_changes_nothing() -> None:
    without, with_it = stepped(since=0), stepped(since=1)

    assert list(with_it.stretches()) == list(without.stretches())
    assert not with_it.steps
    assert with_it.became == {Became.LEARNED: 10, Became.HELD: 2}


def test_two_traces_that_agree_are_a_step_with_amount_and_witnesses() -> None:
    history = stepped()

    (step,) = history.steps
    # Intervals of 4 ms on both sides of 50 ms; the drift of the second in between is granted.
    assert 45 * MS < step.amount_ns <= 46 * MS
    assert (step.after_ns, step.by_ns) == (4_000 * MS, 5_014 * MS)
    assert {witness.trace_id for witness in step.since} == {trace(50), trace(51)}
    assert {witness.trace_id for witness in step.before} <= {trace(n) for n in range(5)}
    assert len({witness.trace_id for witness in step.before}) >= 2
    assert (step.since[0].left, step.since[0].arrived) == (b"callee..", b"caller..")
    epochs = [stretch.epoch for stretch in history.stretches()]
    assert epochs == [0, 1]


def test_each_side_of_a_step_has_its_own_interval() -> None:
    history = stepped()

    assert contains(history.interval(FIRST, SECOND, 2_000 * MS), 30 * MS)
    assert contains(history.interval(FIRST, SECOND, 6_000 * MS), 80 * MS)
    assert not contains(history.interval(FIRST, SECOND, 6_000 * MS), 30 * MS)


@given(
    WORLDS,
    calls(2 * WINDOW_MS, 20),
    st.integers(WINDOW_MS // 2, WINDOW_MS),
    st.integers(-3 * S, 3 * S),
)
def test_once_a_step_is_known_both_sides_are_true_and_so_is_what_lies_between(
    world: World, told, at_ms: int, jump_ns: int
) -> None:
    after = replace(world, offset_ns=world.offset_ns + jump_ns)
    whole = [call for call in sorted(told) if not call[0] < at_ms <= sum(call)]
    history = ClockHistory(ROOMY)
    for number, call in enumerate(whole):
        history.learn(trace(number), (world if call[0] < at_ms else after).call(*call))

    sides = [sum(call[0] < at_ms for call in whole), sum(call[0] >= at_ms for call in whole)]
    if abs(jump_ns) > S and min(sides) >= 2:
        assert len(history.steps) == 1
    if len(history.steps) != 1 or history.became[Became.FORGOTTEN]:
        return
    assert history.steps[0].amount_ns * jump_ns > 0
    assert history.steps[0].after_ns <= history.steps[0].by_ns
    assert abs(history.steps[0].amount_ns) <= abs(jump_ns)
    for ms in range(0, 2 * WINDOW_MS, 5_000):
        true_ns = (world if ms < at_ms else after).offset_at(ms)
        assert contains(history.interval(FIRST, SECOND, ms * MS), true_ns)


def test_between_both_sides_of_a_step_it_may_have_been_either() -> None:
    between = stepped().interval(FIRST, SECOND, 4_500 * MS)

    assert contains(between, 30 * MS)
    assert contains(between, 80 * MS)
    assert not contains(between, 85 * MS)


def test_of_an_epoch_that_had_to_go_nothing_is_known() -> None:
    history = stepped()
    history.learn(trace(60), LATER.call(WINDOW_MS + 5, 2, 10, 2))

    assert [stretch.epoch for stretch in history.stretches()] == [1, 1]
    assert history.interval(FIRST, SECOND, 2_000 * MS) == UNKNOWN
    assert contains(history.interval(FIRST, SECOND, 6_000 * MS), 80 * MS)
    history.learn(trace(61), STILL.call(2_000, 2, 10, 2))
    assert history.became[Became.LATE] == 2


def test_a_first_clock_that_is_set_back_after_a_step_is_believed_in_the_end() -> None:
    history = stepped()
    history.learn(trace(60), LATER.call(WINDOW_MS + 5, 2, 10, 2))
    for number in range(8):
        history.learn(trace(70 + number), STILL.call(1_000 + number, 2, 10, 2))
    assert len(history.steps) == 1
    history.learn(trace(80), STILL.call(2_000, 2, 10, 2))

    assert len(history.steps) == 2
    assert contains(history.interval(FIRST, SECOND, 2_000 * MS), 30 * MS)


def test_witnesses_of_a_step_may_be_minutes_apart() -> None:
    history = stepped(since=0)
    jumped = World(10 * S, [0])
    history.learn(trace(60), jumped.call(5_000, 2, 10, 2))
    history.learn(trace(61), jumped.call(5 * WINDOW_MS, 2, 10, 2))

    assert len(history.steps) == 1
    last = [stretch.traces for stretch in history.stretches() if stretch.epoch == 1]
    assert last == [1]
    assert contains(history.interval(FIRST, SECOND, 5 * WINDOW_MS * MS), 10 * S)


def test_a_clock_that_was_set_back_is_a_step_of_a_negative_amount() -> None:
    history = learned(LATER, [(second * 1_000, 2, 10, 2) for second in range(5)])
    for number in range(2):
        history.learn(trace(50 + number), STILL.call(5_000 + number * 1_000, 2, 10, 2))

    (step,) = history.steps
    assert -46 * MS <= step.amount_ns < -45 * MS


def test_two_odd_traces_that_do_not_agree_are_no_step() -> None:
    history = stepped(since=1)
    history.learn(trace(60), World(-500 * MS, [0]).call(7_000, 2, 10, 2))

    assert not history.steps
    assert history.became[Became.HELD] == 4


def test_the_same_trace_twice_is_one_witness() -> None:
    history = stepped(since=1)
    history.learn(trace(50), LATER.call(9_000, 2, 10, 2))

    assert not history.steps


def test_what_comes_late_goes_to_the_epoch_of_its_time() -> None:
    history = stepped()
    history.learn(trace(70), STILL.call(2_500, 0, 10, 0))
    before, since = history.stretches()

    assert len(history.steps) == 1
    assert (before.messages, since.messages) == (12, 4)
    history.learn(trace(71), World(-500 * MS, [0]).call(2_600, 0, 10, 0))
    assert history.became[Became.LATE] == 2
    assert [stretch.messages for stretch in history.stretches()] == [12, 4]


def test_three_outvote_a_single_one() -> None:
    history = ClockHistory()
    history.learn(trace(1), LATER.call(0, 2, 10, 2))
    for number in (2, 3):
        history.learn(trace(number), STILL.call(number * 1_000, 2, 10, 2))
    assert contains(history.interval(FIRST, SECOND, 0), 80 * MS)
    history.learn(trace(4), STILL.call(4_000, 2, 10, 2))

    assert not history.steps
    assert history.became[Became.FORGOTTEN] == 1
    assert contains(history.interval(FIRST, SECOND, 0), 30 * MS)


def test_a_trace_that_contradicts_itself_is_not_used() -> None:
    history = ClockHistory()
    history.learn(trace(1), [STILL.request(0, 1), LATER.answer(10, 1)])

    assert history.became == {Became.SELF_CONTRADICTING: 2}
    assert history.interval(FIRST, SECOND, 0) == UNKNOWN


def test_one_trace_of_a_distant_time_does_not_make_all_others_late() -> None:
    history = stepped(since=0)
    history.learn(trace(90), STILL.call(10**9, 2, 10, 2))
    assert history.interval(FIRST, SECOND, 10**9 * MS).high_ns == 32 * MS
    for number in range(8):
        assert history.became[Became.LATE] == number * 2 - (number > 7)
        history.learn(trace(100 + number), STILL.call(6_000 + number * 1_000, 2, 10, 2))

    assert history.became[Became.NO_TIME] == 1
    assert history.interval(FIRST, SECOND, 13_000 * MS).high_ns == 32 * MS


REQUEST = STILL.request(0, 1)


@pytest.mark.parametrize(
    "wrong", [REQUEST._replace(left_ns=1 << 63), REQUEST._replace(arrived_ns=-(1 << 63))]
)
def test_what_no_clock_shows_is_set_aside(wrong: Message) -> None:
    history = ClockHistory()
    history.learn(trace(1), [wrong, REQUEST])

    assert history.became == {Became.NO_TIME: 1, Became.LEARNED: 1}


def test_a_message_within_one_clock_tells_nothing() -> None:
    history = ClockHistory()
    history.learn(trace(1), [Message("a", "a", 0, 1, 0, 0, 0, b"", b"")])

    assert not history.pairs()


def test_pairs_steps_and_odd_ones_are_bounded() -> None:
    gone: list[Stretch] = []
    history = ClockHistory(HistorySettings(pairs=2, steps=1), gone.append)
    for number, other in enumerate(("b", "c", "b", "d")):
        renamed = [
            one._replace(sender="a", receiver=other)
            if one.sender == FIRST
            else one._replace(sender=other, receiver="a")
            for one in STILL.call(number, 2, 10, 2)
        ]
        history.learn(trace(number), renamed)

    assert history.pairs() == [("a", "b"), ("a", "d")]
    assert history.evicted == 1
    assert [(stretch.first, stretch.second) for stretch in gone] == [("a", "c")]


def test_only_the_newest_steps_and_odd_traces_are_kept() -> None:
    settings = replace(ROOMY, steps=1, held=2)
    history = stepped(settings)
    assert len(history.steps) == 1
    for number in range(2):
        history.learn(trace(60 + number), STILL.call(8_000 + number * 1_000, 2, 10, 2))
    assert len(history.steps) == 1
    assert history.steps[0].amount_ns < 0
    for number in range(5):
        odd = World((number + 1) * S, [0])
        history.learn(trace(80 + number), odd.call(20_000 + number * 1_000, 2, 10, 2))

    assert len(history.known[FIRST, SECOND].held) == 2
