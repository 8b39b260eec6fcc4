"""Offsets: what messages prove together, and what contradicts what."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest

from llmlat_processor.model import UNKNOWN, Clocks, Interval, Message
from llmlat_processor.offsets import (
    MOST_CONTRADICTIONS,
    between,
    intervals_from,
    shifted,
    solve,
    tightest_of,
    widened,
)


def message(sender: str, receiver: str, limit: int, left: str = "x") -> Message:
    return Message(sender, receiver, 100, 100 + limit, 0, 0, 0, left.encode(), b"y")


def known(*messages: Message) -> Clocks:
    solution = solve(messages)
    return Clocks("a", limits_ns=solution.limits_ns, potentials_ns=solution.potentials_ns)


def test_a_request_bounds_from_above_and_its_answer_from_below() -> None:
    clocks = known(message("a", "b", 40), message("b", "a", -30))
    assert between(clocks, "a", "b") == Interval(30, 40)
    assert between(clocks, "b", "a") == Interval(-40, -30)


def test_what_only_went_one_way_has_one_bound() -> None:
    assert between(known(message("a", "b", 40)), "a", "b") == Interval(None, 40)
    assert between(known(message("a", "b", 40)), "b", "a") == Interval(-40, None)


def test_a_clock_against_itself_is_not_off() -> None:
    assert between(Clocks(), "a", "a") == Interval(0, 0)


def test_clocks_that_no_message_joins_say_nothing_of_each_other() -> None:
    assert between(known(message("a", "b", 40)), "a", "c") == UNKNOWN


def test_uncertainty_adds_along_the_way() -> None:
    clocks = known(
        message("a", "b", 40), message("b", "a", -30), message("b", "c", 5), message("c", "b", 1)
    )
    assert between(clocks, "a", "c") == Interval(29, 45)


def test_a_detour_may_be_the_tightest_way() -> None:
    clocks_of = [message("a", "c", 100), message("a", "b", 10), message("b", "c", 10)]
    clocks = known(*clocks_of)
    assert between(clocks, "a", "c") == Interval(None, 20)
    assert intervals_from(solve(clocks_of), "a")["c"] == Interval(None, 20)


def test_of_several_messages_the_fastest_wins() -> None:
    slow, fast = message("a", "b", 40), message("a", "b", 30)
    assert tightest_of([slow, fast]) == tightest_of([fast, slow]) == {("a", "b"): fast}


def test_what_is_granted_loosens() -> None:
    granted = Message("a", "b", 100, 110, 1, 2, 3, b"x", b"y")
    assert granted.bound_ns == 13
    assert granted.limit_ns == 16


@pytest.mark.parametrize("limit", [-1, -30])
def test_two_that_contradict_each_other_prove_nothing_but_that(limit: int) -> None:
    there, back = message("a", "b", 0), message("b", "a", limit)
    solution = solve([there, back])
    assert solution.contradictions == [(there, back)]
    assert solution.limits_ns == {}


def test_what_just_fits_is_no_contradiction() -> None:
    assert not solve([message("a", "b", 30), message("b", "a", -30)]).contradictions


def test_three_that_contradict_each_other_only_together() -> None:
    circle = [message("a", "b", -10), message("b", "c", 20), message("c", "a", -30)]
    others = [message("b", "a", 60), message("c", "b", -5), message("a", "d", 7)]
    for order in permutations(circle + others):
        solution = solve(order)
        assert solution.contradictions == [tuple(circle)]
        assert solution.limits_ns == {("a", "d"): 7}


def test_every_contradiction_is_found() -> None:
    solution = solve(
        message(*pair, limit)
        for pair, limit in {
            ("a", "b"): 1,
            ("b", "a"): -2,
            ("c", "d"): 5,
            ("d", "e"): -4,
            ("e", "c"): -2,
        }.items()
    )
    assert len(solution.contradictions) == 2
    assert all(sum(m.limit_ns for m in proof) == -1 for proof in solution.contradictions)


def test_a_thousand_domains_in_a_chain_are_bounded() -> None:
    chain = [f"d{number:04}" for number in range(1_000)]
    messages = [message(a, b, 2) for a, b in pairwise(chain)]
    answers = [message(b, a, -1) for a, b in pairwise(chain)]
    solution = solve([*messages, *answers])
    assert intervals_from(solution, chain[0])[chain[-1]] == Interval(999, 1_998)


def test_many_contradictions_are_told_up_to_a_number_and_none_is_used() -> None:
    messages = [
        each
        for number in range(300)
        for names in [[f"{letter}{number}" for letter in "abc"]]
        for each in (
            message(names[0], names[1], 1),
            message(names[1], names[2], 1),
            message(names[2], names[0], -3),
        )
    ]
    solution = solve(messages)
    assert len(solution.contradictions) == MOST_CONTRADICTIONS
    assert solution.limits_ns == {}
    assert solution.is_whole


def test_what_takes_too_long_to_look_through_bounds_nothing() -> None:
    against_the_order = [message(f"d{n}", f"d{n - 1}", -1) for n in range(9, 0, -1)]
    assert len(solve(against_the_order).limits_ns) == 9
    solution = solve(against_the_order, most_steps=40)
    assert (solution.is_whole, solution.limits_ns) == (False, {})


def test_intervals_move_and_widen() -> None:
    assert shifted(Interval(1, None), 5) == Interval(6, None)
    assert widened(Interval(None, 3), 5) == Interval(None, 8)
